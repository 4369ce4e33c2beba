"""How long what a worker remembers may be relied on: fresh, stale, expired."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from snavio.domain.models import Sensitivity


class Phase(IntEnum):
    """Fresh: use it. Stale: use it, then refresh. Expired: refresh first."""

    FRESH = 0
    STALE = 1
    EXPIRED = 2


class Ttl(msgspec.Struct, frozen=True):
    """The ages at which a cache turns stale and expired."""

    fresh_seconds: float
    stale_seconds: float

    def jittered(self, fraction: float) -> Ttl:
        """Both ages shortened by the same fraction, so that workers started together do not refresh together.

        Only ever shortened: the configured ages are promises.
        """
        keep = 1.0 - fraction
        return Ttl(self.fresh_seconds * keep, self.stale_seconds * keep)

    def phase(self, age: float) -> Phase:
        """The phase of something of this age. An age from the future counts as none."""
        if age < self.fresh_seconds:
            return Phase.FRESH
        return Phase.STALE if age < self.stale_seconds else Phase.EXPIRED


class TtlPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The ages for each kind of cache, and for grants by the sensitivity of the command."""

    routing: Ttl = Ttl(300.0, 600.0)
    keys: Ttl = Ttl(60.0, 180.0)
    critical: Ttl = Ttl(2.0, 4.0)
    moderate: Ttl = Ttl(10.0, 20.0)
    low: Ttl = Ttl(30.0, 90.0)

    def of(self, sensitivity: Sensitivity) -> Ttl:
        """The ages of a grant for a command of this sensitivity."""
        if sensitivity is Sensitivity.MODERATE:
            return self.moderate
        return self.critical if sensitivity is Sensitivity.CRITICAL else self.low

    def jittered(self, fraction: float) -> TtlPolicy:
        """Every age shortened by the same fraction."""
        return TtlPolicy(
            routing=self.routing.jittered(fraction),
            keys=self.keys.jittered(fraction),
            critical=self.critical.jittered(fraction),
            moderate=self.moderate.jittered(fraction),
            low=self.low.jittered(fraction),
        )
