"""What the platform promises to tell, checked on the history of a run alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.runtime.testing import EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulation.history import History

_MAY_DIFFER = frozenset(
    {
        "emitted_at",
        "dispatch_latency_ms",
        "retry_after_ms",
        "throttle_until",
        "detail",
        "reason",
        "sub_reason",
    }
    | {"source_share", "competing_share", "dispatch_volume", "path", "stale_duration_seconds"}
)
"""What a step done again may tell differently of the same thing."""


def outcomes_are_told(history: History) -> Iterator[str]:
    """Every delivery and every escalation is told of, and nothing is told as delivered that was not."""
    told: dict[tuple[str, str], set[str]] = {}
    for event in history.rows.values():
        told.setdefault((event.get("command_id", ""), event.get("source", "")), set()).add(event["event"])
    buried = {one.body for one in history.buried if one.service == "slow"}
    given_up = {one.key for one in history.escalations if one.body_text in buried}
    again = _handled_again(history)
    for delivery in history.deliveries:
        key = (delivery.metadata["id"], delivery.command["source"])
        events = told.get(key, set())
        # What was tried again may have been refused then, though it had gone through unheard.
        refused = key in again and ("snavio.command.failed" in events or key in given_up)
        if "snavio.command.delivered" not in events and not refused:
            yield f"{delivery}: nobody was told"
    yield from _deliveries_are_true(history)
    yield from _repeats_are_true(history)
    yield from _escalations_are_told(history)


def _deliveries_are_true(history: History) -> Iterator[str]:
    """Each that is told of happened, by the path that is told."""
    delivered = Counter(
        (one.metadata["id"], one.command["source"], *one.pair, one.path) for one in history.deliveries
    )
    told = Counter(
        (event["command_id"], event["source"], event["target"], event["command"]["name"], event["path"])
        for event in history.rows.values()
        if event["event"] == "snavio.command.delivered"
    )
    for said, count in told.items():
        if delivered[said] < count:
            yield f"told {count} times as delivered and was {delivered[said]} times: {' '.join(said)}"


def _repeats_are_true(history: History) -> Iterator[str]:
    """What is told as a repeat is one of several that came to whoever tells it; slow tells it of what was delivered."""
    service_of = {one.event["event_id"]: one.worker.partition("-")[0] for one in history.written}
    came = {
        "fast": Counter(one.key for one in history.passed),
        "slow": Counter(one.key for one in history.escalations),
    }
    delivered = {(one.metadata["id"], one.command["source"]) for one in history.deliveries}
    told = {
        (service_of[event["event_id"]], (event["command_id"], event["source"]))
        for event in history.rows.values()
        if event["event"] == "snavio.command.duplicate"
    }
    for service, key in sorted(told):
        if came[service][key] < 2 or (service == "slow" and key not in delivered):
            yield f"{service} told {' of '.join(key)} as a repeat, and there was none before"


def _handled_again(history: History) -> set[tuple[str, str]]:
    """The commands that were in hand more than once: a message of theirs came back, or there were several."""
    messages: Counter[tuple[str, str]] = Counter()
    for one in (*history.passed, *history.escalations):
        messages[one.key] += 1
    came_back = {one.key for one in history.taken if one.count > 1}
    return came_back | {key for key, count in messages.items() if count > 1}


def _escalations_are_told(history: History) -> Iterator[str]:
    """Whoever escalated the one message it had of a command, the one time it had it, and then deleted it, told of it."""
    receipts: dict[tuple[str, tuple[str, str]], list[str]] = {}
    for taken in history.taken:
        receipts.setdefault((taken.worker, taken.key), []).append(taken.message_id)
    deleted = {(one.worker, one.message_id): one.at for one in history.deleted}
    told = {
        (one.worker, (one.event["command_id"], one.event["source"]))
        for one in history.written
        if one.event["event"] == "snavio.command.escalated"
    }
    for one in history.escalations:
        received = receipts[one.worker, one.key]
        finished = len(received) == 1 and deleted.get((one.worker, received[0]), 0.0) >= one.at
        if finished and (one.worker, one.key) not in told:
            yield f"{one.worker} escalated {' of '.join(one.key)} at {one.at - EPOCH:.3f} and told nobody"


def what_is_told_arrives(history: History) -> Iterator[str]:
    """Every event written reaches the topic of its tenant, no topic gets another's, and nothing else gets there."""
    arrived: set[str] = set()
    written = {event["event_id"]: event for event in history.rows.values()}
    for tenant, body in history.published:
        event = msgspec.json.decode(body)
        arrived.add(event["event_id"])
        if event["tenant"] != tenant:
            yield f"an event of {event['tenant']} was given to {tenant}: {event['event_id']}"
        if event["event_id"] not in written:
            yield f"published and never written: {event['event_id']}"
    for identity, event in written.items():
        if identity not in arrived:
            yield f"{event['event']} {identity} of {event['tenant']} never reached its topic"
    for identity in history.unpublished:
        yield f"{identity} was still in the outbox long after every fault had ended"


def one_id_one_story(history: History) -> Iterator[str]:
    """An event id never tells two different things, and a mark once given is not taken back."""
    first: dict[str, dict[str, Any]] = {}
    for written in history.written:
        event = written.event
        known = first.setdefault(event["event_id"], event)
        differing = sorted(
            name
            for name in known.keys() | event.keys()
            if name not in _MAY_DIFFER and known.get(name) != event.get(name)
        )
        if differing:
            yield f"event {event['event_id']} ({event['event']}) was told with another {', '.join(differing)}"
    for key, event in history.rows.items():
        if key[1] != event["event_id"]:
            yield f"event {event['event_id']} lies at {key}"


def a_step_is_told_once(history: History) -> Iterator[str]:
    """However often a message is handled, its outcome has one event: of each kind no more than messages it can be of."""
    put = Counter((one.id, one.source) for one in history.sent)
    passed = Counter(one.key for one in history.passed)
    escalated = Counter(one.key for one in history.escalations)
    messages: dict[tuple[str, str], Counter[tuple[str, str]]] = {
        ("snavio.command.invalid", ""): put,
        ("snavio.telemetry.skew_near_limit", ""): put,
        ("snavio.command.delivered", "fast"): passed,
        ("snavio.command.escalated", ""): passed,
        ("snavio.command.delivered", "slow"): escalated,
        ("snavio.command.failed", ""): escalated,
        ("snavio.command.over_limit", ""): escalated,
        # Both can find one.
        ("snavio.command.duplicate", ""): passed + escalated,
    }
    told = Counter(
        (kind, (event.get("command_id", ""), event.get("source", "")))
        for event in history.rows.values()
        if "command_id" in event and (kind := (event["event"], event.get("path", ""))) in messages
    )
    for (kind, key), count in told.items():
        if count > messages[kind][key]:
            yield f"{kind[0]} was told {count} times of {' of '.join(key)}, of which there were {messages[kind][key]} messages"


def slips_are_told(history: History) -> Iterator[str]:
    """Whatever was delivered on a grant already revoked is reported, unless its worker died or had to end before it could."""
    told = {
        (event["command_id"], event["source"])
        for event in history.rows.values()
        if event["event"] == "snavio.command.executed_after_acl_revoked"
    }
    registry, skew = history.registry, 2 * history.settings.skew
    for delivery in history.deliveries:
        source = delivery.command["source"]
        states = registry.between(delivery.decided_from - skew, delivery.at)
        granted = any(state.grant(source, *delivery.pair) for state in states)
        if granted or history.may_be_silent(delivery.worker):
            continue
        if (delivery.metadata["id"], source) not in told:
            yield f"{delivery}: its grant was revoked, and nobody was told that it went through"


def workers_stand(history: History) -> Iterator[str]:
    """No fault of the world makes a handler raise or a worker fall."""
    yield from history.broken
