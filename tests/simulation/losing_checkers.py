"""What the platform promises of every message put: an end of its own. Checked on the history of a run alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from simulation.refusal_checkers import could_not_be_delivered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulation.history import Escalation, History

    Key = tuple[str, str]
    """The id of a command and its source."""


def nothing_lost(history: History) -> Iterator[str]:
    """Every message put ends delivered, refused or failed with an event of its own, or in a dead-letter queue.

    Counted at each queue: a message of the ingress queue is refused or goes on to the fast queue, one of the fast queue is
    told delivered, a duplicate or escalated, one of the slow queue delivered, failed or a duplicate.
    """
    for body in history.stuck:
        yield f"still under way long after the last fault: {body[:200]}"
    ends = _Ends(history)
    yield from _ingress_ends(history, ends)
    fast = Counter(one.key for one in history.passed)
    slow = Counter(one.key for one in history.escalations)
    for service, messages in (("fast", fast), ("slow", slow)):
        for key, count in messages.items():
            found = ends.of(service, key)
            if found < count:
                yield f"{' of '.join(key)} came to {service} {count} times and has {found} ends there"
    for key, count in _escalations_told(history).items():
        if slow[key] < count:
            yield f"{' of '.join(key)} was told {count} times as escalated and came {slow[key]} times to slow"


def _escalations_told(history: History) -> Counter[Key]:
    return Counter(
        (event["command_id"], event["source"])
        for event in history.rows.values()
        if event["event"] == "snavio.command.escalated"
    )


def _ingress_ends(history: History, ends: _Ends) -> Iterator[str]:
    letters = Counter(history.dead_letters)
    passed = Counter((*one.key, one.received_at) for one in history.passed)
    puts: defaultdict[Key, Counter[float]] = defaultdict(Counter)
    for body, count in Counter(one.body for one in history.sent if one.kind == "malformed").items():
        if letters[body] < count:
            yield f"unreadable {body[:80]!r} was put {count} times and is {letters[body]} times a dead letter"
    for sent in history.sent:
        if sent.kind != "malformed":
            puts[sent.id, sent.source][sent.arrived_at] += 1
    for key, arrivals in puts.items():
        # What went on says when it had arrived.
        stayed = sum(max(0, count - passed[*key, at]) for at, count in arrivals.items())
        refused = ends.of("shield", key)
        if refused < stayed:
            put = arrivals.total()
            yield f"{' of '.join(key)} was put {put} times, {stayed} did not go on, {refused} were refused"


class _Ends:
    """How often each command ended at each service, by what is told of it."""

    def __init__(self, history: History) -> None:
        service_of = {one.event["event_id"]: one.worker.partition("-")[0] for one in history.written}
        self._told: Counter[tuple[str, str, str]] = Counter()
        for event in history.rows.values():
            if event["event"] in _ENDS:
                service = service_of.get(event["event_id"], "")
                self._told[service, event.get("command_id", ""), event.get("source", "")] += 1

    def of(self, service: str, key: Key) -> int:
        return self._told[service, *key]


_ENDS = frozenset(
    {
        "snavio.command.delivered",
        "snavio.command.invalid",
        "snavio.command.failed",
        "snavio.command.duplicate",
        "snavio.command.escalated",
    }
)


def nothing_buried_alive(history: History) -> Iterator[str]:
    """Nothing ends in a dead-letter queue but what nobody can read and what no target would take.

    Faults end long before a message has been received too often.
    """
    unreadable = {sent.body for sent in history.sent if sent.kind == "malformed"}
    parked = {one.body: one.at for one in history.buried if one.service == "slow"}
    escalated: defaultdict[str, list[Escalation]] = defaultdict(list)
    for one in history.escalations:
        escalated[one.body_text].append(one)
    for body in history.dead_letters:
        if body in unreadable:
            continue
        if body not in parked:
            yield f"in a dead-letter queue for no reason: {body[:200]}"
        elif not could_not_be_delivered(history, escalated[body], parked[body]):
            yield f"in a dead-letter queue though its target could take it: {body[:200]}"
