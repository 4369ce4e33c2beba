"""What the platform promises to those it refuses, checked on the history of a run alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulation.checkers import ROUNDING, admits

from snavio.domain.models import BanMode, Route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulation.history import Escalation, History, Sent, State

_WARM_PATH_BAN = "warm_path_ban"


def refusals_are_just(history: History) -> Iterator[str]:
    """Nothing is refused for what no registry in force since a moment before it came, and nothing that happened, shows."""
    puts: dict[tuple[str, str], list[Sent]] = {}
    for sent in history.sent:
        puts.setdefault((sent.id, sent.source), []).append(sent)
    for written in history.written:
        event = written.event
        if event["event"] not in {"snavio.command.invalid", "snavio.command.failed"}:
            continue
        if "command_id" not in event:
            continue  # nobody can read it: it is a dead letter
        key = event["command_id"], event.get("source", "")
        if key not in puts:
            yield f"{event['event']} was told of {' of '.join(key)}, and nobody had sent it"
        elif event["event"] == "snavio.command.invalid":
            if not any(_could_be_invalid(sent, written.at, history) for sent in puts[key]):
                yield f"{puts[key][0].kind} {key[0]} was refused as {event['reason']}: {event['detail']}"
        elif not _Failure(history, event, min(sent.arrived_at for sent in puts[key]), written.at).is_just():
            yield f"{key[0]} was failed with {event['reason']} {event.get('sub_reason', '')}, and nothing shows why"


def _could_be_invalid(sent: Sent, at: float, history: History) -> bool:
    settings = history.settings
    if not sent.authentic or sent.kind == "malformed":
        return True
    if abs(sent.arrived_at - sent.timestamp) > settings.replay_window_seconds - ROUNDING:
        return True
    margin = 2 * settings.skew + settings.expires("keys")
    states = history.registry.between(sent.arrived_at - margin, at)
    return not all(admits(state, sent) for state in states)


class _Failure:
    """A genuine command that slow refused, and all that slow can have known by then."""

    def __init__(self, history: History, event: dict[str, Any], arrived_at: float, at: float) -> None:
        self._history = history
        self._event = event
        self._at = at
        self._key = event["command_id"], event["source"]
        self._pair = event["target"], event["command"]["name"]
        self._since = since = arrived_at - 2 * history.settings.skew - ROUNDING
        # It refuses for what is not there only on what it read since; for a limit on what it remembers.
        self._current = history.registry.between(since, at)
        self._remembered = history.registry.between(since - longest_memory(history), at)

    def is_just(self) -> bool:
        judge = getattr(self, "_" + self._event["reason"].replace("-", "_"), None)
        return judge is not None and judge()

    def _acl_deny(self) -> bool:
        return any(state.grant(self._event["source"], *self._pair) is None for state in self._current)

    def _route_missing(self) -> bool:
        return any(self._route(state) is None for state in self._current)

    def _rate_limit_exceeded(self) -> bool:
        if self._event.get("sub_reason") != "source-quota":
            return self._is_limited()
        quotas = [state.quota(self._event["source"], *self._pair) for state in self._remembered]
        return any(quotas) and self._is_off_the_fast_path()

    def _fairness_violation(self) -> bool:
        shares = [
            route.fairness.dominant_share for state in self._remembered if (route := self._route(state))
        ]
        dominates = bool(shares) and self._event.get("source_share", 0.0) >= min(shares)
        return dominates and self._is_limited() and self._is_off_the_fast_path()

    def _delivery_failure(self) -> bool:
        messages = [one for one in self._history.escalations if one.key == self._key]
        return could_not_be_delivered(self._history, messages, self._at)

    def _route(self, state: State) -> Route | None:
        return state.route(*self._pair)

    def _is_limited(self) -> bool:
        routes = [self._route(state) for state in self._remembered]
        return any(route and route.rate_limit and not route.rate_limit.shadow for route in routes)

    def _is_off_the_fast_path(self) -> bool:
        """It came for a ban, or there was one."""
        return any(
            one.key == self._key and one.reason == _WARM_PATH_BAN for one in self._history.escalations
        ) or any(self._is_banned(state) for state in self._remembered)

    def _is_banned(self, state: State) -> bool:
        target, command = self._pair
        return any(
            ban.mode is BanMode.WARM
            and ban.target in {None, target}
            and ban.command in {None, command}
            and (ban.until is None or ban.until > self._since)
            for ban in state.bans(self._event["source"])
        )


def could_not_be_delivered(history: History, messages: list[Escalation], at: float) -> bool:
    """Whether slow may have given messages up by then: their queue was missing, or one had been tried as often as it should.

    All are of one command.
    """
    if not messages:
        return False
    ids = {one.message_id for one in messages}
    tries = [one.count for one in history.taken if one.message_id in ids and one.at <= at]
    if max(tries, default=0) >= history.settings.delivery_attempts:
        return True
    since = min(one.at for one in messages) - longest_memory(history) - 2 * history.settings.skew
    routes = [state.route(*messages[0].pair) for state in history.registry.between(since, at)]
    return any(route and route.queue_arn not in history.queues for route in routes)


def longest_memory(history: History) -> float:
    """How long anything on routes and grants may be remembered."""
    return max(history.settings.expires(cache) for cache in ("critical", "moderate", "low"))
