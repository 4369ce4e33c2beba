"""The memory of one fast worker: leases, fairness windows and the strict ids it handed on."""

from __future__ import annotations

from snavio.dispatch.claim_store import claim_key
from snavio.dispatch.lease_book import LeaseBook
from snavio.domain.dedupe import HandedOn, SeenIds
from snavio.domain.fairness import FairnessWindows
from snavio.domain.models import Route
from snavio.wire.commands import Admitted, Dominance


class WarmState:
    """What the warm decision asks of the worker itself."""

    def __init__(self, leases: LeaseBook, windows: FairnessWindows, seen: SeenIds) -> None:
        self.leases = leases
        self.windows = windows
        self._seen = seen

    def seen_by(self, command: Admitted, now: float) -> HandedOn | None:
        """How this worker handed on the same strict command, if it did."""
        return self._seen.find(claim_key(command), now)

    def local_ban(self, command: Admitted, now: float) -> Dominance | None:
        """The ban this worker holds against the source."""
        return self.windows.ban((command.target, command.name), command.source, now)

    def take_unit(self, route: Route, now: float) -> bool:
        """Spend a unit of the lease for a limited route."""
        return self.leases.take(route, now)

    def escalated(self, command: Admitted, handed: HandedOn, now: float) -> None:
        """A strict command is safely with slow."""
        self._seen.add(claim_key(command), handed, now)
