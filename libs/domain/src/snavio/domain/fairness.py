"""Fairness on the warm path: who takes how much of a (target, command), and when that is too much."""

from __future__ import annotations

import msgspec

from snavio.domain.models import FairnessPolicy
from snavio.wire.commands import Dominance
from snavio.wire.events import derived_id

Pair = tuple[str, str]
"""(target, command)"""


class Shares(msgspec.Struct, frozen=True):
    """How one source stands against the others in a window."""

    source_share: float
    competing_share: float
    competitors: int
    volume: int


def dominates(shares: Shares, policy: FairnessPolicy) -> bool:
    """Whether the source takes too much of something others want as well. Alone, nobody ever does."""
    return (
        policy.enabled
        and shares.volume >= policy.min_dispatches
        and shares.competitors > 0
        and shares.source_share > policy.dominant_share
        and (
            shares.competing_share >= policy.meaningful_share or shares.competitors >= policy.min_competitors
        )
    )


class _Window:
    __slots__ = ("counts", "ends_at", "total")

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.total = 0
        self.counts: dict[str, int] = {}


class FairnessWindows:
    """Counts of dispatches by source for every (target, command), in windows, with the bans they led to.

    Deterministic: the same records at the same times open the same bans.
    """

    def __init__(self, worker: str, *, most_pairs: int = 100_000) -> None:
        self._worker = worker
        self._most_pairs = most_pairs
        self._windows: dict[Pair, _Window] = {}
        self._bans: dict[tuple[str, str, str], Dominance] = {}

    def record(self, pair: Pair, source: str, policy: FairnessPolicy, now: float) -> Dominance | None:
        """Count one dispatch; the ban it opened, where it did."""
        window = self._windows.get(pair)
        if window is None or now >= window.ends_at:
            if window is None and len(self._windows) >= self._most_pairs:
                self.forget_past(now)
            window = self._windows[pair] = _Window(now + policy.window_seconds)
        window.total += 1
        count = window.counts.get(source, 0) + 1
        window.counts[source] = count
        # The common case first: a source below the threshold cannot open a ban.
        if count <= policy.dominant_share * window.total or count == window.total:
            return None
        shares = self._shares(window, source)
        key = (source, *pair)
        if not dominates(shares, policy) or self._ban(key, now) is not None:
            return None
        ban = Dominance(
            ban_id=derived_id("ban", self._worker, *key, f"{now:.6f}"),
            opened_at=now,
            until=now + policy.ban_seconds,
            source_share=shares.source_share,
            competing_share=shares.competing_share,
            dispatch_volume=shares.volume,
        )
        self._bans[key] = ban
        return ban

    def ban(self, pair: Pair, source: str, now: float) -> Dominance | None:
        """The ban in force against a source, if any."""
        return self._ban((source, *pair), now) if self._bans else None

    def shares(self, pair: Pair, source: str, now: float) -> Shares:
        """How a source stands in the window that is open, or in an empty one."""
        window = self._windows.get(pair)
        if window is None or now >= window.ends_at:
            return Shares(0.0, 0.0, 0, 0)
        return self._shares(window, source)

    def bans_in_force(self, now: float) -> int:
        """How many bans are open."""
        return sum(1 for ban in self._bans.values() if now < ban.until)

    def forget_past(self, now: float) -> None:
        """Let go of windows and bans that are over."""
        self._windows = {pair: window for pair, window in self._windows.items() if now < window.ends_at}
        self._bans = {key: ban for key, ban in self._bans.items() if now < ban.until}

    def _ban(self, key: tuple[str, str, str], now: float) -> Dominance | None:
        ban = self._bans.get(key)
        if ban is not None and now >= ban.until:
            del self._bans[key]
            return None
        return ban

    @staticmethod
    def _shares(window: _Window, source: str) -> Shares:
        count = window.counts.get(source, 0)
        total = window.total
        competitors = len(window.counts) - (1 if count else 0)
        return Shares(count / total, (total - count) / total, competitors, total)


class GlobalBanPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When repeated warm-path bans become a ban everywhere."""

    bans: int = 3
    within_seconds: float = 600.0
    ban_seconds: float = 600.0


def goes_global(opened_at: list[float], policy: GlobalBanPolicy, now: float) -> bool:
    """Whether so many bans lie within the period that the source is banned everywhere."""
    return sum(1 for at in opened_at if now - at <= policy.within_seconds) >= policy.bans
