"""What the platform promises of a command's way, checked on the history of a run alone.

Each checker yields sentences about what broke its promise. They share no code with what they check but the shapes of
messages, and know no more than an auditor with perfect clocks would.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
from simulation.history import Delivery, Sent, State, Taken

from snavio.domain.models import BanMode, DedupeMode, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simulation.history import History

    Checker = Callable[[History], Iterator[str]]

ROUNDING = 0.002
"""Times on the wire have milliseconds; and things that happen in the same instant happen in either order."""


def only_what_is_allowed(history: History) -> Iterator[str]:
    """Nothing is delivered that was not sent like this, genuinely, in time, and on a route and grant in force.

    What a worker remembers may be as old as its cache's hard bound, and no older.
    """
    by_id: dict[str, list[Sent]] = {}
    for sent in history.sent:
        by_id.setdefault(sent.id, []).append(sent)
    for delivery in history.deliveries:
        candidates = [sent for sent in by_id.get(delivery.metadata["id"], []) if _is_as_sent(delivery, sent)]
        if not candidates:
            yield f"{delivery}: nothing like it was sent"
            continue
        faults = [_fault_of(sent, delivery, history) for sent in candidates]
        if all(faults):
            yield f"{delivery}: {faults[0]}"
        elif not _is_routed(delivery, history):
            yield f"{delivery}: no route and grant in force led there"


def _is_as_sent(delivery: Delivery, sent: Sent) -> bool:
    command = delivery.command
    said = (command["source"], command["target"], command["name"])
    return said == (sent.source, sent.target, sent.command) and _payload_of(delivery) == sent.payload


def _payload_of(delivery: Delivery) -> Any:
    """What its target gets; nothing that was ever sent where what it is referred to is not what it is told to be."""
    ref = delivery.command.get("payload_ref")
    if ref is None:
        return delivery.command["payload"]
    left = delivery.left
    if left is None or (len(left), hashlib.sha256(left).hexdigest()) != (ref["bytes"], ref["sha256"]):
        return _NOTHING_SENT
    return msgspec.json.decode(left)


_NOTHING_SENT = object()


def _fault_of(sent: Sent, delivery: Delivery, history: History) -> str | None:
    """Why shield should have refused this message, as far as no registry it may have used admits it."""
    settings = history.settings
    if not sent.authentic or sent.kind == "malformed":
        return f"it is {sent.kind}"
    if abs(sent.arrived_at - sent.timestamp) > settings.replay_window_seconds + ROUNDING:
        return "its timestamp is out of the window"
    oldest = sent.arrived_at - settings.expires("keys") - 2 * settings.skew
    if any(admits(state, sent) for state in history.registry.between(oldest, delivery.at)):
        return None
    return "no key, ban and schema in force let it pass"


def admits(state: State, sent: Sent) -> bool:
    at = sent.arrived_at
    key = state.key("_platform/replayer" if sent.replay else sent.source, sent.version_id)
    if key is None or (key.not_after is not None and at >= key.not_after):
        return False
    if any(
        ban.mode is BanMode.OUTRIGHT and ban.target is None and (ban.until is None or at < ban.until)
        for ban in state.bans(sent.source)
    ):
        return False
    route = state.route(sent.target, sent.command)
    return route is None or _fits(route, sent)


def _fits(route: Route, sent: Sent) -> bool:
    # The one schema of the workload: an object with a whole number `n`.
    return not route.schema or isinstance(sent.payload.get("n"), int)


def _is_routed(delivery: Delivery, history: History) -> bool:
    settings = history.settings
    source = delivery.command["source"]
    longest = max(settings.expires(cache) for cache in ("critical", "moderate", "low"))
    low = delivery.decided_from - longest - 2 * settings.skew
    times, states = history.registry.times, history.registry.states
    for index, state in enumerate(states):
        until = times[index + 1] if index + 1 < len(times) else float("inf")
        if times[index] > delivery.at or until < low:
            continue
        route = state.route(*delivery.pair)
        grant = state.grant(source, *delivery.pair)
        if route is None or grant is None or not route.queue_arn.endswith(f":{delivery.queue}"):
            continue
        age = settings.expires(grant.sensitivity or route.sensitivity)
        if until >= delivery.decided_from - age - 2 * settings.skew - ROUNDING:
            return True
    return False


def the_fast_path_is_shut(history: History) -> Iterator[str]:
    """What is banned from the fast path, or while nothing may use it, does not go by it for longer than memory lasts."""
    skew = history.settings.skew
    for delivery in history.deliveries:
        if delivery.path != "fast":
            continue
        low = delivery.decided_from - memory_of(delivery, history) - ROUNDING
        states = history.registry.between(low, delivery.at)
        source = delivery.command["source"]
        if all(state.cold_only() for state in states):
            yield f"{delivery}: the fast path was shut for everyone"
        elif all(_is_shut_out(state, source, delivery, skew) for state in states):
            yield f"{delivery}: its source was banned from the fast path"
        elif any(
            (route := state.route(*delivery.pair)) and route.dedupe_mode is DedupeMode.STRICT
            for state in states
        ):
            yield f"{delivery}: a strict command went by the fast path"


def _is_shut_out(state: State, source: str, delivery: Delivery, skew: float) -> bool:
    # A ban that ends by itself ends by the worker's clock: it must have stood by any.
    return any(
        (ban.until is None or ban.until > delivery.at + skew)
        and ban.target in {None, delivery.pair[0]}
        and ban.command in {None, delivery.pair[1]}
        for ban in state.bans(source)
    )


def memory_of(delivery: Delivery, history: History) -> float:
    """How long what a delivery was decided on may have been remembered: everything is read at once, so as its grant."""
    settings = history.settings
    longest = max(settings.expires(cache) for cache in ("critical", "moderate", "low"))
    profiles = [
        grant.sensitivity or route.sensitivity
        for state in history.registry.between(
            delivery.decided_from - longest - 2 * settings.skew, delivery.at
        )
        if (route := state.route(*delivery.pair))
        and (grant := state.grant(delivery.command["source"], *delivery.pair))
    ]
    return max((settings.expires(profile) for profile in profiles), default=longest)


def memory_is_bounded(history: History) -> Iterator[str]:
    """No worker decides on a registry that it last read longer ago than the hard bound of what it decides on."""
    for delivery in history.deliveries:
        age = memory_of(delivery, history)
        oldest = delivery.decided_from - age - ROUNDING
        if not any(oldest <= read <= delivery.decided_by for read in history.reads.get(delivery.worker, [])):
            yield f"{delivery}: its worker had not read the registry for more than {age:g} s"


def strict_ones_once(history: History) -> Iterator[str]:
    """A strict command is delivered once; whatever comes on top is marked as a possible duplicate."""
    seen: dict[tuple[str, ...], Delivery] = {}
    for delivery in sorted(history.deliveries, key=lambda one: one.at):
        states = history.registry.between(delivery.decided_from - 60, delivery.at)
        routes = [route for state in states if (route := state.route(*delivery.pair))]
        if (
            delivery.marked
            or not routes
            or any(route.dedupe_mode is not DedupeMode.STRICT for route in routes)
        ):
            continue
        key = (delivery.command["source"], *delivery.pair, delivery.metadata["id"])
        if key in seen:
            yield f"{delivery}: delivered before without a mark, at {seen[key].at:.3f}"
        seen.setdefault(key, delivery)


def marks_are_just(history: History) -> Iterator[str]:
    """Only what may have been delivered before is marked, or told, as a possible duplicate.

    Its message had been received before, or another with the same id had been, or it had been under way for longer than
    ids are remembered.
    """
    first: dict[tuple[str, ...], float] = {}
    for sent in history.sent:
        first[sent.id, sent.source] = min(sent.arrived_at, first.get((sent.id, sent.source), sent.arrived_at))
    receipts: dict[tuple[str, ...], list[Taken]] = {}
    for taken in history.taken:
        if taken.is_slow:
            receipts.setdefault(taken.key, []).append(taken)
    marked = [
        ((one.metadata["id"], one.command["source"]), one.at, str(one))
        for one in history.deliveries
        if one.marked
    ]
    marked += [
        ((one.event["command_id"], one.event["source"]), one.at, f"told of {one.event['command_id']}")
        for one in history.written
        if one.event.get("possible_duplicate")
    ]
    remembered = history.settings.dedupe_seconds - 2 * history.settings.skew - ROUNDING
    for key, at, what in marked:
        before = [one for one in receipts.get(key, []) if one.at <= at]
        is_old = at - first.get(key, at) >= remembered
        came_back = any(one.count > 1 for one in before)
        if not is_old and not came_back and len({one.message_id for one in before}) < 2:
            yield f"{what}: a possible duplicate of nothing"
