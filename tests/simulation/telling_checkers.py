"""What the platform promises to tell, checked on the history of a run alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from simulation.checkers import ROUNDING, admits
from simulation.history import Sent

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
    """Every delivery is told of, and nothing is told as delivered that was not."""
    told: dict[str, set[str]] = {}
    for event in history.rows.values():
        told.setdefault(event.get("command_id", ""), set()).add(event["event"])
    ends = {"snavio.command.delivered", "snavio.command.failed", "snavio.command.duplicate"}
    letters = "\n".join(history.dead_letters)
    delivered = {(one.metadata["id"], one.command["source"], *one.pair) for one in history.deliveries}
    for delivery in history.deliveries:
        identity = delivery.metadata["id"]
        if not told.get(identity, set()) & ends and identity not in letters:
            yield f"{delivery}: nobody was told"
    for event in history.rows.values():
        if event["event"] == "snavio.command.delivered":
            said = (event["command_id"], event["source"], event["target"], event["command"]["name"])
            if said not in delivered:
                yield f"told as delivered and was not: {' '.join(said)}"


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
    """However often a message is handled, its outcome has one event.

    A put gives one message to shield, and what shield, fast and slow may send twice is known: so many events, no more.
    """
    for sent in {one.message_id: one for one in history.sent}.values():
        if sent.kind != "malformed" and not sent.authentic:
            invalid = [
                event
                for event in history.rows.values()
                if event["event"] == "snavio.command.invalid" and event.get("command_id") == sent.id
            ]
            puts = sum(one.id == sent.id for one in history.sent)
            if len(invalid) > puts:
                yield f"{sent.kind} {sent.id} was put {puts} times and told invalid {len(invalid)} times"


def refusals_are_just(history: History) -> Iterator[str]:
    """Nothing is refused that no registry in force since a moment before it came could have refused."""
    by_id: dict[str, list[Sent]] = {}
    for sent in history.sent:
        by_id.setdefault(sent.id, []).append(sent)
    settings = history.settings
    margin = 2 * settings.skew + settings.expires("keys")
    for written in history.written:
        event = written.event
        puts = by_id.get(event.get("command_id", ""), [])
        if event["event"] == "snavio.command.invalid" and puts:
            if not any(_could_be_invalid(sent, written.at, margin, history) for sent in puts):
                yield f"{puts[0].kind} {puts[0].id} was refused as {event['reason']}: {event['detail']}"
        elif event["event"] == "snavio.command.failed" and event["reason"] in {"acl-deny", "route-missing"}:
            low = min(sent.arrived_at for sent in puts) - 2 * settings.skew - ROUNDING
            states = history.registry.between(low, written.at)
            pair = event["target"], event["command"]["name"]
            missing = (
                any(state.grant(event["source"], *pair) is None for state in states)
                if event["reason"] == "acl-deny"
                else any(state.route(*pair) is None for state in states)
            )
            if not missing:
                yield f"{event['command_id']} was failed with {event['reason']} though it stood all the while"


def _could_be_invalid(sent: Sent, at: float, margin: float, history: History) -> bool:
    if not sent.authentic or sent.kind == "malformed":
        return True
    if abs(sent.arrived_at - sent.timestamp) > history.settings.replay_window_seconds - ROUNDING:
        return True
    states = history.registry.between(sent.arrived_at - margin, at)
    return not all(admits(state, sent) for state in states)


def slips_are_told(history: History) -> Iterator[str]:
    """Whatever was delivered on a grant already revoked is reported, unless its worker died before it could know."""
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
        if granted or delivery.worker in history.crashed:
            continue
        if (delivery.metadata["id"], source) not in told:
            yield f"{delivery}: its grant was revoked, and nobody was told that it went through"


def workers_stand(history: History) -> Iterator[str]:
    """No fault of the world makes a handler raise or a worker fall."""
    yield from history.broken
