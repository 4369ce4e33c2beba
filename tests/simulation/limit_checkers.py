"""How much the platform promises to deliver at most, checked on the history of a run alone."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from simulation.checkers import ROUNDING, memory_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simulation.history import Delivery, History, State

    from snavio.domain.models import RateLimit

_BANNED = "warm_path_ban"


class _Counted(NamedTuple):
    """A delivery that took a unit of one of these lines, so many units a second and so many at once."""

    since: float
    at: float
    lines: frozenset[tuple[float, int]]


def limits_hold(history: History) -> Iterator[str]:
    """In any T seconds no more than burst + limit·T/interval are delivered.

    A delivery counts for the moment it acted, or for any since its worker had the command: a unit may be spent and the
    send then be late. Counted is each for which every route that its worker can have decided on had a limit; where a limit
    was changed, each of its figures has a line of its own.
    """
    counted: defaultdict[tuple[str, str], list[_Counted]] = defaultdict(list)
    for delivery in history.deliveries:
        routes = [route for state in _known(delivery, history) if (route := state.route(*delivery.pair))]
        limits = [route.rate_limit for route in routes]
        if limits and all(limit and not limit.shadow for limit in limits):
            counted[delivery.pair].append(_count(delivery, limits))
    for pair, deliveries in counted.items():
        for excess in _exceeding(deliveries):
            yield f"{' '.join(pair)}: {excess}"


def quotas_hold(history: History) -> Iterator[str]:
    """Of what slow has because of a warm-path ban, no more than burst + limit·T/interval of a source's quota is delivered.

    Counted are deliveries whose every escalation was for such a ban, where each registry that slow can have decided on
    had a quota; as with limits, each of its figures has a line of its own.
    """
    reasons: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for escalation in history.escalations:
        reasons[escalation.key].add(escalation.reason)
    counted: defaultdict[tuple[str, str, str], list[_Counted]] = defaultdict(list)
    for delivery in history.deliveries:
        source = delivery.command["source"]
        if delivery.path != "slow" or reasons[delivery.metadata["id"], source] != {_BANNED}:
            continue
        whose = (source, *delivery.pair)
        quotas = [state.quota(*whose) for state in _known(delivery, history)]
        if all(quotas):
            counted[whose].append(_count(delivery, [quota.rate_limit for quota in quotas if quota]))
    for whose, deliveries in counted.items():
        for excess in _exceeding(deliveries):
            yield f"the quota of {whose[0]} for {' '.join(whose[1:])}: {excess}"


def _known(delivery: Delivery, history: History) -> list[State]:
    """Every state of the registry that a delivery can have been decided on."""
    low = delivery.decided_from - memory_of(delivery, history) - ROUNDING
    return history.registry.between(low, delivery.at)


def _count(delivery: Delivery, limits: Iterable[RateLimit | None]) -> _Counted:
    lines = frozenset((limit.per_second, limit.capacity) for limit in limits if limit)
    return _Counted(delivery.decided_from, delivery.at, lines)


def _exceeding(deliveries: list[_Counted]) -> Iterator[str]:
    """Where more was delivered than the lines from which it can have been taken allow together."""
    for start in sorted(one.since for one in deliveries):
        within = sorted((one for one in deliveries if one.since >= start), key=lambda one: one.at)
        lines: frozenset[tuple[float, int]] = frozenset()
        for count, one in enumerate(within, 1):
            lines |= one.lines
            rate, burst = sum(rate for rate, _ in lines), sum(burst for _, burst in lines)
            if count > burst + rate * (one.at - start) + 1e-6:
                yield (
                    f"{count} deliveries within {one.at - start:.3f} s from {start:.3f}; "
                    f"allowed are {burst} + {rate:g} a second"
                )
                break
