"""What follows from abuse: a ban, and events for everybody it concerns. Pure; the sink performs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from snavio.wire.events import AbuseDetected, derived_id
from snavio.wire.names import tenant_of
from snavio.wire.times import format_time


class AbuseBan(msgspec.Struct, frozen=True, order=True):
    """A source off the warm path everywhere, for what it did in one ban window."""

    source: str
    window: int
    """Where the ban window begins, in seconds since the epoch."""
    until: int
    targets: tuple[str, ...]
    violations: int
    """Minutes times targets."""
    minutes: int = 0
    """Minutes with any violation."""


class BanSink(Protocol):
    """Where bans and their events go. Applying the same again changes nothing."""

    def owners(self, targets: Iterable[str]) -> Mapping[str, str]:
        """The tenant of each target that is registered."""
        ...

    def apply(self, bans: Sequence[AbuseBan], events: Sequence[AbuseDetected], *, now: float) -> None:
        """Make the bans and the events durable."""
        ...


def in_force(bans: Iterable[AbuseBan], now: float) -> list[AbuseBan]:
    """The bans not over yet: one found too late (after an outage) is kept in the lake and not acted on."""
    return sorted(ban for ban in bans if now < ban.until)


def events_of(
    bans: Iterable[AbuseBan], told: Iterable[AbuseBan], owners: Mapping[str, str], *, now: float
) -> list[AbuseDetected]:
    """One event a ban and tenant: the offender, and the owner of each affected target.

    `told` are the bans as an earlier run reported them: a tenant that has heard of a ban window hears no more of it. The
    id follows from source, ban window and tenant, so a run that is done again reports the same events.
    """
    heard = {(ban.source, ban.window): _concerned(ban, owners) for ban in told}
    return [
        AbuseDetected(
            event_id=derived_id("abuse", ban.source, str(ban.window), tenant),
            tenant=tenant,
            emitted_at=format_time(now),
            source=ban.source,
            affected_targets=list(ban.targets),
            total_violations=ban.violations,
            ban_applied_until=format_time(ban.until),
        )
        for ban in bans
        for tenant in sorted(_concerned(ban, owners) - heard.get((ban.source, ban.window), set()))
    ]


def _concerned(ban: AbuseBan, owners: Mapping[str, str]) -> set[str]:
    return {tenant_of(ban.source)} | {owners[target] for target in ban.targets if target in owners}
