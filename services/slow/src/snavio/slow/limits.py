"""Quotas and limits for a batch: what belongs together is reserved together."""

from __future__ import annotations

from collections.abc import Callable

from snavio.aws.errors import SnavioError
from snavio.dispatch.limit_store import LimitStore, pair_name, quota_name
from snavio.domain.cold import over_limit, over_quota
from snavio.domain.fairness import FairnessWindows
from snavio.domain.models import RateLimit
from snavio.registry.keeper import Keeper
from snavio.runtime.outcome import Retry
from snavio.slow.case import Case


class Limits:
    """Reserves units for open commands; those without a unit leave with a refusal."""

    def __init__(
        self, store: LimitStore, keeper: Keeper, windows: FairnessWindows, *, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._windows = windows
        self._clock = clock

    async def reserve(self, cases: list[Case]) -> None:
        """Quotas first, and only for sources off the warm path; then the targets' limits."""
        await self._reserve_quotas(cases)
        await self._reserve_limits(cases)

    async def _reserve_quotas(self, cases: list[Case]) -> None:
        groups: dict[tuple[str, str, str], list[Case]] = {}
        for case in cases:
            if case.open and case.eligible is not None and case.eligible.banned:
                groups.setdefault((case.command.source, *case.pair), []).append(case)
        for (source, target, command), group in groups.items():
            quota = self._keeper.registry.quota(source, target, command)
            if quota is None:
                continue
            reserved = await self._reserve(quota_name(source, target, command), quota.rate_limit, group)
            if reserved is None:
                continue
            units, retry_after_ms = reserved
            for case in group[units:]:
                case.refusal = over_quota(quota.rate_limit, retry_after_ms, self._clock())

    async def _reserve_limits(self, cases: list[Case]) -> None:
        groups: dict[tuple[str, str], list[Case]] = {}
        for case in cases:
            if case.open and case.eligible is not None and case.eligible.route.rate_limit is not None:
                groups.setdefault(case.pair, []).append(case)
        for (target, command), group in groups.items():
            # Who is off the warm path comes last when units run out.
            group.sort(key=lambda case: case.eligible is not None and case.eligible.banned)
            first = group[0].eligible
            if first is None or first.route.rate_limit is None:
                continue
            limit = first.route.rate_limit
            reserved = await self._reserve(pair_name(target, command), limit, group)
            if reserved is None:
                continue
            units, retry_after_ms = reserved
            for case in group[units:]:
                self._turn_away(case, limit, retry_after_ms)

    async def _reserve(self, name: str, limit: RateLimit, group: list[Case]) -> tuple[int, int] | None:
        try:
            reservation = await self._store.reserve(name, limit, len(group))
        except SnavioError as error:
            for case in group:
                case.outcome = Retry(f"its limit could not be counted: {error}")
            return None
        if 0 < reservation.units < len(group) and reservation.retry_after_ms == 0:
            # Some were had and the rest were not: when the next one comes is one unit's time away.
            unit_ms = max(1, 1000 * limit.interval_seconds // limit.limit)
            return reservation.units, unit_ms
        return reservation.units, reservation.retry_after_ms

    def _turn_away(self, case: Case, limit: RateLimit, retry_after_ms: int) -> None:
        if limit.shadow:
            case.shadowed_ms = retry_after_ms
            return
        eligible = case.eligible
        if eligible is None:
            return
        now = self._clock()
        case.refusal = over_limit(
            eligible.route,
            limit,
            retry_after_ms,
            banned=eligible.banned,
            shares=self._windows.shares(case.pair, case.command.source, now),
            dominance=case.escalated.dominance,
            now=now,
        )
