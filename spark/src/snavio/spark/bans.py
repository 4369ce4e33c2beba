"""What follows from abuse: a ban, and events for everybody it concerns. Pure; the sink performs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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


class Verdict(msgspec.Struct, frozen=True):
    """What the abuse found in some ban windows comes to."""

    acting: list[AbuseBan]
    """Bans for it that are not over."""
    lifting: list[AbuseBan]
    """Bans placed earlier for what, now that more is known, was no abuse."""
    restoring: list[AbuseBan]
    """Earlier bans of the sources of `lifting`, which hold on: only one ban of a source stands, and it was the later."""


class BanSink(Protocol):
    """Where bans and their events go. Doing the same again changes nothing."""

    def owners(self, targets: Iterable[str]) -> Mapping[str, str]:
        """The tenant of each target that is registered."""
        ...

    def apply(self, bans: Sequence[AbuseBan], events: Sequence[AbuseDetected], *, now: float) -> int:
        """Make the bans and the events durable; returns how many of the events had not been told before."""
        ...

    def lift(self, bans: Sequence[AbuseBan], *, now: float) -> None:
        """End these bans, where they still stand as they were placed."""
        ...


def in_force(bans: Iterable[AbuseBan], now: float) -> list[AbuseBan]:
    """The bans not over yet: one found too late (after an outage) is kept in the lake and not acted on."""
    return sorted(ban for ban in bans if now < ban.until)


def judge(
    found: Iterable[AbuseBan], recorded: Iterable[AbuseBan], windows: Collection[int], now: float
) -> Verdict:
    """The verdict on `found`, all the abuse in these ban windows.

    `recorded` is what earlier runs acted on, in these windows and in the ones before, which bans outlast.
    """
    found, recorded = list(found), in_force(recorded, now)
    flagged = {(ban.source, ban.window) for ban in found}
    lifting = [ban for ban in recorded if ban.window in windows and (ban.source, ban.window) not in flagged]
    sources = {ban.source for ban in lifting}
    return Verdict(
        acting=in_force(found, now),
        lifting=lifting,
        restoring=[ban for ban in recorded if ban.window not in windows and ban.source in sources],
    )


def events_of(bans: Iterable[AbuseBan], owners: Mapping[str, str], *, now: float) -> list[AbuseDetected]:
    """One event a ban and tenant: the offender, and the owner of each affected target.

    The id follows from source, ban window and tenant: however often a ban window is looked at, a tenant hears of it by
    the same id, and by that the sink tells whom it has told.
    """
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
        for tenant in sorted(_concerned(ban, owners))
    ]


def _concerned(ban: AbuseBan, owners: Mapping[str, str]) -> set[str]:
    return {tenant_of(ban.source)} | {owners[target] for target in ban.targets if target in owners}
