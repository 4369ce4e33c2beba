"""The bill for a load: by path, by component, beside the alternatives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from snavio.cli.cost.alternatives import lambda_standing, lambda_usage, plain_usage
from snavio.cli.cost.calls import calls_of, metered
from snavio.cli.cost.fleet import fleet_for
from snavio.cli.cost.prices import Prices
from snavio.cli.cost.standing import MONTH_SECONDS, standing
from snavio.cli.cost.workload import Path, Workload

MILLION = 1e6
GOAL = 10.0
"""USD a million commands, the most it should be."""
HIGHEST_RATE = 1e6
_LOWEST_RATE, _HALVINGS = 0.001, 60

Usd = dict[str, float]


class PathCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a million commands on one path cost, in USD; standing cost apart, which is the same for every path."""

    share: float
    by_component: Usd
    total: float
    lambda_dispatch: float
    plain: float


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What a load costs, in USD."""

    region: str
    prices_recorded: str
    workload: Workload
    batches: dict[str, float]
    """Messages in a batch, by worker."""
    workers: dict[str, int]
    paths: dict[Path, PathCost]
    standing_monthly: Usd
    """By component."""
    standing_per_million: float
    by_component: Usd
    """A million commands of the mix, standing cost shared out."""
    per_million: float
    monthly: float
    lambda_per_million: float
    plain_per_million: float


def bill_for(load: Workload, prices: Prices) -> Bill:
    """The bill for a load at the prices of a region."""
    fleet = fleet_for(load)
    paths: dict[Path, PathCost] = {}
    for path in Path:
        metered_calls = (
            (call.component, meter, amount)
            for call in calls_of(path, load, fleet.fills)
            for meter, amount in metered(call).items()
        )
        parts = _priced(metered_calls, prices, MILLION)
        paths[path] = PathCost(
            share=load.mix.get(path, 0.0),
            by_component=parts,
            total=sum(parts.values()),
            lambda_dispatch=_sum(lambda_usage(path, load, fleet.fills), prices, MILLION),
            plain=_sum(plain_usage(path, load), prices, MILLION),
        )
    commands_monthly = load.rate * MONTH_SECONDS
    still = _priced(standing(load, fleet), prices, MONTH_SECONDS)
    share = MILLION / commands_monthly
    together: defaultdict[str, float] = defaultdict(float)
    for cost in paths.values():
        for component, usd in cost.by_component.items():
            together[component] += usd * cost.share
    for component, usd in still.items():
        together[component] += usd * share
    per_million = sum(together.values())
    functions_still = _sum(lambda_standing(), prices, MONTH_SECONDS) * share
    return Bill(
        region=prices.region,
        prices_recorded=prices.recorded,
        workload=load,
        batches=msgspec.structs.asdict(fleet.fills),
        workers={service: crew.workers for service, crew in fleet.crews.items()},
        paths=paths,
        standing_monthly=still,
        standing_per_million=sum(still.values()) * share,
        by_component=_dearest_first(together),
        per_million=per_million,
        monthly=per_million * commands_monthly / MILLION,
        lambda_per_million=functions_still
        + sum(cost.lambda_dispatch * cost.share for cost in paths.values()),
        plain_per_million=sum(cost.plain * cost.share for cost in paths.values()),
    )


def rate_that_meets(goal: float, load: Workload, prices: Prices) -> float | None:
    """The lowest rate at which a million commands cost no more than the goal; None when no rate does."""

    def meets(rate: float) -> bool:
        return bill_for(msgspec.structs.replace(load, rate=rate), prices).per_million <= goal

    if not meets(HIGHEST_RATE):
        return None
    low, high = _LOWEST_RATE, HIGHEST_RATE
    for _ in range(_HALVINGS):
        # Costs fall as rates rise, over many orders of magnitude.
        middle = (low * high) ** 0.5
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _priced(uses: Iterable[tuple[str, str, float]], prices: Prices, times: float) -> Usd:
    found: defaultdict[str, float] = defaultdict(float)
    for component, meter, amount in uses:
        found[component] += prices.usd(meter, amount * times)
    return _dearest_first(found)


def _dearest_first(usd: Usd) -> Usd:
    return dict(sorted(usd.items(), key=lambda one: -one[1]))


def _sum(uses: Iterable[tuple[str, str, float]], prices: Prices, times: float) -> float:
    return sum(_priced(uses, prices, times).values())
