"""What the platform promises of a command's way, checked on the history of a run alone.

Each checker yields sentences about what broke its promise. They share no code with what they check but the shapes of
messages, and know no more than an auditor with perfect clocks would.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from simulation.history import Delivery, Sent, State

from snavio.domain.models import BanMode, DedupeMode, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simulation.history import History

    Checker = Callable[[History], Iterator[str]]

ROUNDING = 0.002
"""Times on the wire have milliseconds; and things that happen in the same instant happen in either order."""

TERMINAL = frozenset(
    {
        "snavio.command.delivered",
        "snavio.command.invalid",
        "snavio.command.failed",
        "snavio.command.duplicate",
    }
)


def nothing_lost(history: History) -> Iterator[str]:
    """Every message put ends delivered, refused or failed with an event of its own, or in a dead-letter queue."""
    for body in history.stuck:
        yield f"still under way long after the last fault: {body[:200]}"
    ends: Counter[str] = Counter()
    for event in history.rows.values():
        if event["event"] in TERMINAL:
            ends[event.get("command_id", "")] += 1
    for body in history.dead_letters:
        for identity in {sent.id for sent in history.sent}:
            if identity in body:
                ends[identity] += 1
    letters = Counter(history.dead_letters)
    puts = Counter(sent.id for sent in history.sent if sent.kind not in {"malformed", "broken"})
    for identity, count in puts.items():
        if ends[identity] < count:
            yield f"command {identity} was put {count} times and has {ends[identity]} ends"
    for sent in history.sent:
        if sent.kind == "malformed" and not letters[sent.body]:
            yield f"unreadable message {sent.message_id} is in no dead-letter queue"
        if sent.kind == "broken" and not any(
            event["event"] == "snavio.command.invalid" and _is_about(event, sent)
            for event in history.rows.values()
        ):
            yield f"broken message {sent.message_id} was never reported"


def _is_about(event: dict[str, object], sent: Sent) -> bool:
    return event.get("command_id") == sent.id


def nothing_buried_alive(history: History) -> Iterator[str]:
    """Nothing ends in a dead-letter queue but what nobody can read and what no target would take.

    Faults end long before a message has been received too often.
    """
    unreadable = {sent.body for sent in history.sent if sent.kind == "malformed"}
    for body in history.dead_letters:
        if body not in unreadable and body not in history.parked:
            yield f"in a dead-letter queue for no reason: {body[:200]}"


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
    if said != (sent.source, sent.target, sent.command):
        return False
    return "payload_ref" in command or command["payload"] == sent.payload


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
    for delivery in history.deliveries:
        if delivery.path != "fast":
            continue
        low = delivery.decided_from - memory_of(delivery, history) - ROUNDING
        states = history.registry.between(low, delivery.at)
        source = delivery.command["source"]
        if all(state.cold_only() for state in states):
            yield f"{delivery}: the fast path was shut for everyone"
        elif all(_is_shut_out(state, source, delivery) for state in states):
            yield f"{delivery}: its source was banned from the fast path"
        elif any(
            (route := state.route(*delivery.pair)) and route.dedupe_mode is DedupeMode.STRICT
            for state in states
        ):
            yield f"{delivery}: a strict command went by the fast path"


def _is_shut_out(state: State, source: str, delivery: Delivery) -> bool:
    # A ban that ends by itself ends by the worker's clock: left to those without an end.
    return any(
        ban.until is None
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
        if not any(oldest <= read <= delivery.at for read in history.reads.get(delivery.worker, [])):
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


def limits_hold(history: History) -> Iterator[str]:
    """In any T seconds no more than burst + limit·T/interval are delivered.

    A delivery counts for the moment it acted, or for any since its worker had the command: a unit may be spent and the
    send then be late. Where a limit was changed, each of its figures has a line of its own.
    """
    by_pair: dict[tuple[str, str], list[Delivery]] = {}
    for delivery in history.deliveries:
        by_pair.setdefault(delivery.pair, []).append(delivery)
    for pair, deliveries in by_pair.items():
        limits = {
            (route.rate_limit.limit / route.rate_limit.interval_seconds, route.rate_limit.capacity)
            if route.rate_limit and not route.rate_limit.shadow
            else None
            for state in history.registry.states
            if (route := state.route(*pair))
        }
        if None in limits or not limits:
            continue
        for excess in exceeding(deliveries, {limit for limit in limits if limit}):
            yield f"{' '.join(pair)}: {excess}"


def exceeding(deliveries: list[Delivery], limits: set[tuple[float, int]]) -> Iterator[str]:
    """Where more was delivered than limits of so much a second, and so much at once, allow together."""
    rate, burst = sum(rate for rate, _ in limits), sum(burst for _, burst in limits)
    spans = sorted((one.decided_from, one.at) for one in deliveries)
    for start, _ in spans:
        within = sorted(end for begin, end in spans if begin >= start)
        for count, end in enumerate(within, 1):
            if count > burst + rate * (end - start) + 1e-6:
                yield (
                    f"{count} deliveries within {end - start:.3f} s from {start:.3f}; "
                    f"allowed are {burst} + {rate:g} a second"
                )
                break
