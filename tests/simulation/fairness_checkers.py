"""To whom the platform promises to be just, checked on the history of a run alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from simulation.checkers import ROUNDING
from simulation.history import OPERATOR

from snavio.runtime.testing import EPOCH
from snavio.wire.times import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulation.history import BanPlaced, Escalation, History

    from snavio.domain.models import FairnessPolicy

_RETRY = "delivery_retry"


def bans_are_just(history: History) -> Iterator[str]:
    """Only a source that took nearly all of something others wanted as well is taken off the fast path for it.

    Everywhere only after as many bans as the policy asks for; each ban is told once to each whom it concerns, and holds.
    """
    yield from _local_bans_are_deserved(history)
    yield from _bans_are_told(history)
    yield from _bans_are_told_once(history)
    yield from _bans_hold(history)
    for placed in history.bans:
        if placed.actor != OPERATOR:
            yield from _is_counted_right(placed, history)


def _told_bans(history: History) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with the worker that told it; told again after a write without an answer, it is the same."""
    seen: set[str] = set()
    for written in history.written:
        event = written.event
        if event["event"] == "snavio.fairness.warm-path-ban" and event["event_id"] not in seen:
            seen.add(event["event_id"])
            yield written.worker, event


def _local_bans_are_deserved(history: History) -> Iterator[str]:
    for worker, event in _told_bans(history):
        pair = event["target"], event["command"]["name"]
        policy = next(route.fairness for state in history.registry.states if (route := state.route(*pair)))
        at = _time(event["emitted_at"])
        if not _Windows(history, worker, pair, at).show(event["source"], policy):
            yield (
                f"{event['source']} was banned from the fast path of {' '.join(pair)} by {worker} "
                f"at {at - EPOCH:.3f} and did not dominate it"
            )


class _Windows:
    """What one worker can have counted for a pair until it opened a ban.

    A worker writes on what it delivers and escalates when it decided on it, by the clock by which it counts: so times
    compare. What it took and neither delivered nor passed on as it was may have been counted at any time.
    """

    def __init__(self, history: History, worker: str, pair: tuple[str, str], at: float) -> None:
        self._at = at
        latest = at + history.settings.skew + ROUNDING
        self._taken = Counter(
            (one.source, one.id)
            for one in history.taken
            if one.worker == worker and one.pair == pair and one.at <= latest
        )
        deliveries = Counter(
            (one.command["source"], one.metadata["id"], _time(one.metadata["dispatched_at"]))
            for one in history.deliveries
            if one.worker == worker and one.pair == pair
        )
        mine = [one for one in history.escalations if one.worker == worker and one.pair == pair]
        # Where the send was not answered, a delivery is escalated as well and is the same dispatch.
        failures = Counter((one.source, one.id, _milliseconds(one)) for one in mine if one.reason == _RETRY)
        self._counted = deliveries | failures
        """How often a command was surely counted at a moment."""
        self._passed_on = Counter(
            (one.source, one.id) for one in mine if one.reason != _RETRY and one.said_at < at
        )

    def show(self, source: str, policy: FairnessPolicy) -> bool:
        """Whether in any window that the worker can have had the source took too much."""
        earliest = self._at - policy.window_seconds - ROUNDING
        starts = {at for _, _, at in self._counted if earliest <= at <= self._at}
        return any(self._shows(source, policy, start) for start in starts | {self._at})

    def _shows(self, source: str, policy: FairnessPolicy, start: float) -> bool:
        most = self._most(start)
        others = sum(count for whose, count in most.items() if whose != source)
        # What was counted in the same instant may have been counted after the ban.
        surely = sum(
            count
            for (whose, _, at), count in self._counted.items()
            if whose != source and start <= at < self._at - ROUNDING
        )
        return (
            others > 0
            and most[source] + others >= policy.min_dispatches
            and most[source] > policy.dominant_share * (most[source] + max(1, surely))
        )

    def _most(self, start: float) -> Counter[str]:
        """How many of each source the worker can have counted since."""
        possible = self._taken - self._passed_on
        for (source, identity, at), count in self._counted.items():
            if at < start:
                possible[source, identity] -= count
        most: Counter[str] = Counter()
        for (source, _), count in possible.items():
            most[source] += max(0, count)
        return most


def _bans_are_told(history: History) -> Iterator[str]:
    """Whatever a worker escalated for a ban of its own, the source and the owner of the target are told of that ban."""
    told = {
        (worker, event["tenant"], event["source"], *_pair_of(event), event["emitted_at"])
        for worker, event in _told_bans(history)
    }
    due: set[tuple[str, ...]] = set()
    for one in history.escalations:
        if one.ban_id is None or history.may_be_silent(one.worker):
            continue
        routes = [route for state in history.registry.states if (route := state.route(*one.pair))]
        for tenant in {one.source.partition("/")[0], routes[0].tenant}:
            due.add((one.worker, tenant, one.source, *one.pair, format_time(one.ban_opened_at)))
    for worker, tenant, source, target, command, at in sorted(due - told):
        yield f"{worker} banned {source} from the fast path of {target} {command} at {at} and never told {tenant}"


def _bans_hold(history: History) -> Iterator[str]:
    """Whom a worker banned, it delivers nothing of by the fast path until the ban ends; all by that worker's clock."""
    for worker, event in _told_bans(history):
        start, end = _time(event["emitted_at"]) + ROUNDING, _time(event["throttle_until"]) - ROUNDING
        for one in history.deliveries:
            if (
                one.worker == worker
                and one.path == "fast"
                and (one.command["source"], *one.pair) == (event["source"], *_pair_of(event))
                and start < _time(one.metadata["dispatched_at"]) < end
            ):
                yield f"{one}: {worker} had banned its source from the fast path until {event['throttle_until']}"


def _pair_of(event: dict[str, Any]) -> tuple[str, str]:
    return event["target"], event["command"]["name"]


def _bans_are_told_once(history: History) -> Iterator[str]:
    """A worker opens no ban while one of its own is in force."""
    until: dict[tuple[str, ...], float] = {}
    for worker, event in sorted(_told_bans(history), key=lambda told: told[1]["emitted_at"]):
        key = (worker, event["tenant"], event["source"], event["target"], event["command"]["name"])
        if _time(event["emitted_at"]) < until.get(key, 0.0) - ROUNDING:
            yield f"{worker} told {event['tenant']} twice of one ban of {event['source']}: {event['event_id']}"
        until[key] = _time(event["throttle_until"])


def _is_counted_right(placed: BanPlaced, history: History) -> Iterator[str]:
    """A ban everywhere ends so long after its worker counted, by its clock, and was reported by fast before it was placed."""
    ban, settings = placed.ban, history.settings
    since = (ban.until or 0.0) - settings.global_ban_seconds - settings.global_ban_within_seconds
    reported = {
        one.ban_id
        for one in history.escalations
        if one.ban_id
        and (one.source, *one.pair) == (ban.source, ban.target, ban.command)
        and one.at <= placed.at
        and one.ban_opened_at >= since - 2 * settings.skew - ROUNDING
    }
    if len(reported) < settings.global_ban_after:
        yield (
            f"{ban.source} was banned everywhere from {ban.target} {ban.command} at {placed.at - EPOCH:.3f} "
            f"after {len(reported)} bans within {settings.global_ban_within_seconds:g} s; "
            f"the policy asks for {settings.global_ban_after}"
        )


def _milliseconds(escalation: Escalation) -> float:
    # As a delivery says it.
    return _time(format_time(escalation.said_at))


def _time(text: str) -> float:
    return parse_time(text) or 0.0
