"""The way of a command through the in-memory Snavio: the platform's own decisions, with memory in place of AWS."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from snavio.domain.bucket import UNIT, Bucket, microseconds
from snavio.domain.cold import Eligible, Refusal, examine, over_limit, over_quota
from snavio.domain.dedupe import (
    AlreadyDone,
    ClaimRecord,
    DedupePolicy,
    HandedOn,
    Repeat,
    SeenIds,
    resolve_claim,
)
from snavio.domain.fairness import FairnessWindows
from snavio.domain.models import DispatchMode, RateLimit, Route
from snavio.domain.screening import Passed, Refused, ScreeningPolicy, screen
from snavio.domain.warm import Deliver, DropRepeat, decide_warm, needs_claim_check
from snavio.sdk.testing.registry import MemoryRegistry
from snavio.wire.commands import (
    COMMAND_SENT,
    Admitted,
    Delivered,
    Dominance,
    Escalated,
    EscalationReason,
    PayloadRef,
    delivered,
)
from snavio.wire.times import format_time

BUCKET = "snavio-in-memory"


class Reports(Protocol):
    """Where results are told."""

    def delivered(self, command: Admitted, message: Delivered) -> None:
        """It is in the target's queue."""
        ...

    def invalid(self, source: str, refused: Refused) -> None:
        """It was not a genuine command."""
        ...

    def passed(self, passed: Passed) -> None:
        """It was genuine; with what there is to say of its key and its clock."""
        ...

    def failed(self, command: Admitted, refusal: Refusal) -> None:
        """It was not delivered."""
        ...

    def duplicate(self, command: Admitted) -> None:
        """It had been delivered before."""
        ...

    def escalated(self, command: Admitted, reason: EscalationReason) -> None:
        """Fast left it to slow."""
        ...

    def over_limit(self, command: Admitted, refusal: Refusal) -> None:
        """A limit in shadow mode would have refused it."""
        ...

    def banned(self, command: Admitted, ban: Dominance) -> None:
        """Its source lost the warm path."""
        ...


class Units:
    """What was issued of each limit."""

    def __init__(self) -> None:
        self._issued: dict[object, int] = {}

    def take(self, key: object, limit: RateLimit, now: float) -> int | None:
        """Take one unit; or say in how many milliseconds there will be one."""
        bucket, at = Bucket.of(limit), microseconds(now)
        window, issued = bucket.window(at), self._issued.get(key)
        if window.room_after(issued) < 1:
            return max(1, -(-bucket.wait_us(issued or 0, at) // 1000))
        self._issued[key] = max(window.floor, window.floor if issued is None else issued) + UNIT
        return None


class _Local:
    """What one fast worker remembers, as its decision asks for it."""

    def __init__(self, units: Units) -> None:
        self.seen = SeenIds(remember_seconds=DedupePolicy().remember_seconds)
        self.fairness = FairnessWindows("in-memory")
        self._units = units

    def seen_by(self, command: Admitted, now: float) -> HandedOn | None:
        return self.seen.find(_claim_key(command), now)

    def local_ban(self, command: Admitted, now: float) -> Dominance | None:
        return self.fairness.ban((command.target, command.name), command.source, now)

    def take_unit(self, route: Route, now: float) -> bool:
        limit = route.rate_limit
        return limit is None or self._units.take((route.target, route.command), limit, now) is None


class Dispatch:
    """Shield, fast and slow, one after the other and at once."""

    def __init__(self, registry: MemoryRegistry, reports: Reports, now: Callable[[], float]) -> None:
        self.objects: dict[str, bytes] = {}
        self.screening = ScreeningPolicy()
        self.mode = DispatchMode.ADAPTIVE
        self._registry = registry
        self._reports = reports
        self._now = now
        self._units = Units()
        self._local = _Local(self._units)
        self._cold = FairnessWindows("in-memory-cold")
        self._claims: dict[str, ClaimRecord] = {}

    def arrive(self, event_id: str, source: str, detail: str) -> None:
        """What the bus delivered."""
        now = self._now()
        envelope: dict[str, Any] = {
            "version": "0",
            "id": event_id,
            "detail-type": COMMAND_SENT,
            "source": source,
            "time": format_time(now),
            "detail": msgspec.Raw(detail.encode()),
        }
        result = screen(msgspec.json.encode(envelope).decode(), now, self._registry, self.screening)
        if isinstance(result, Refused):
            self._reports.invalid(source, result)
        elif isinstance(result, Passed):
            self._reports.passed(result)
            self._fast(result.command, event_id)

    def _fast(self, command: Admitted, message_id: str) -> None:
        now = self._now()
        decision = decide_warm(command, message_id, self._registry, self._local, self.mode, now)
        if isinstance(decision, Deliver):
            self._deliver(command, path="fast")
            pair = (command.target, command.name)
            ban = self._local.fairness.record(pair, command.source, decision.route.fairness, now)
            if ban is not None:
                self._reports.banned(command, ban)
        elif isinstance(decision, DropRepeat):
            self._reports.duplicate(command)
        else:
            self._reports.escalated(command, decision.reason)
            if decision.strict:
                self._local.seen.add(_claim_key(command), HandedOn(message_id, decision.reason), now)
            self._slow(Escalated(command, decision.reason, now, decision.dominance), message_id)

    def _slow(self, escalated: Escalated, message_id: str) -> None:
        now, command = self._now(), escalated.command
        found = examine(escalated, self._registry, current=True, now=now)
        if isinstance(found, Refusal):
            self._reports.failed(command, found)
        elif isinstance(found, Eligible) and not (found.strict and self._is_repeat(command, message_id, now)):
            refusal = self._limited(escalated, found, now)
            if refusal is not None:
                self._claims.pop(_claim_key(command), None)
                self._reports.failed(command, refusal)
                return
            large = needs_claim_check(command, found.route)
            self._deliver(command, path="slow", ref=self._stored(command) if large else None)

    def _is_repeat(self, command: Admitted, message_id: str, now: float) -> bool:
        key, policy = _claim_key(command), DedupePolicy()
        claim = resolve_claim(
            self._claims.get(key), owner=message_id, received_at=command.received_at, now=now, policy=policy
        )
        if isinstance(claim, Repeat | AlreadyDone):
            self._reports.duplicate(command)
            return True
        self._claims[key] = ClaimRecord(
            message_id,
            message_id,
            committed=True,
            claimed_until=now,
            remembered_until=now + policy.remember_seconds,
        )
        return False

    def _limited(self, escalated: Escalated, eligible: Eligible, now: float) -> Refusal | None:
        command, route = escalated.command, eligible.route
        pair = (command.target, command.name)
        self._cold.record(pair, command.source, route.fairness, now)
        if eligible.banned:
            quota = self._registry.quotas.get((command.source, *pair))
            if quota is not None:
                wait_ms = self._units.take((command.source, *pair), quota.rate_limit, now)
                if wait_ms is not None:
                    return over_quota(quota.rate_limit, wait_ms, now)
        limit = route.rate_limit
        if limit is None:
            return None
        wait_ms = self._units.take(pair, limit, now)
        if wait_ms is None:
            return None
        refusal = over_limit(
            route,
            limit,
            wait_ms,
            banned=eligible.banned,
            shares=self._cold.shares(pair, command.source, now),
            dominance=escalated.dominance,
            now=now,
        )
        if limit.shadow:
            self._reports.over_limit(command, refusal)
            return None
        return refusal

    def _deliver(self, command: Admitted, *, path: str, ref: PayloadRef | None = None) -> None:
        message = delivered(command, path=path, dispatched_at=format_time(self._now()), payload_ref=ref)
        self._reports.delivered(command, message)

    def _stored(self, command: Admitted) -> PayloadRef:
        payload = bytes(command.payload)
        key = f"claim-check/{command.id}"
        self.objects[key] = payload
        return PayloadRef(BUCKET, key, len(payload), hashlib.sha256(payload).hexdigest())


def _claim_key(command: Admitted) -> str:
    return f"{command.source}#{command.target}#{command.name}#{command.id}"
