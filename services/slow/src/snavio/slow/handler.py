"""Slow's handler: decide with authority, step by step, each step for the whole batch at once.

The order of effects is what makes it safe to die anywhere: claim, reserve, send, commit, record, acknowledge. A message
that comes back finds how far it had got.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Queues
from snavio.aws.values import Outgoing, Received
from snavio.dispatch.command_log import log_command
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.dispatch.reports import delivered_event, failed_event, over_limit_event
from snavio.dispatch.stats_feed import StatsFeed
from snavio.domain.cold import Eligible, Refresh, Refusal, examine
from snavio.domain.fairness import FairnessWindows
from snavio.registry.keeper import Keeper
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.outcome import Dead, Done, Outcome, Retry
from snavio.runtime.telemetry import Telemetry
from snavio.slow.ban_counter import BanCounter
from snavio.slow.case import Case
from snavio.slow.claims import Claims
from snavio.slow.limits import Limits
from snavio.slow.sending import Sending
from snavio.wire.commands import decode_escalated
from snavio.wire.events import Event, FailedReason
from snavio.wire.times import format_time

_DONE = Done()


class SlowHandler:
    """Delivers or refuses batches from the slow queue."""

    def __init__(
        self,
        *,
        keeper: Keeper,
        claims: Claims,
        limits: Limits,
        sending: Sending,
        bans: BanCounter,
        windows: FairnessWindows,
        outbox: OutboxWriter,
        queues: Queues,
        parking: str,
        feed: StatsFeed,
        clock: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
    ) -> None:
        self._keeper = keeper
        self._claims = claims
        self._limits = limits
        self._sending = sending
        self._bans = bans
        self._windows = windows
        self._outbox = outbox
        self._queues = queues
        self._parking = parking
        self._feed = feed
        self._clock = clock
        self._log = log
        self._telemetry = telemetry

    async def handle(self, batch: Sequence[Received]) -> Sequence[Outcome]:
        """Decide on each command of a batch and see its effects through."""
        dead: dict[str, Outcome] = {}
        cases: list[Case] = []
        for message in batch:
            try:
                cases.append(Case(message, decode_escalated(message.body)))
            except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
                dead[message.receipt] = Dead(f"not a message of fast's: {problem}")
        await self._work(cases)
        settled = {case.message.receipt: case.outcome or Retry("left undecided") for case in cases}
        return [dead.get(message.receipt) or settled[message.receipt] for message in batch]

    async def _work(self, cases: list[Case]) -> None:
        events: list[tuple[Case, Event]] = []
        await self._examine(cases)
        await self._count_bans(cases)
        await self._claims.take(cases, events)
        await self._limits.reserve(cases)
        await self._sending.send(cases)
        await self._claims.conclude(cases)
        await self._park_undeliverable(cases)
        for case in cases:
            if case.outcome is None:
                self._report(case, events)
                case.outcome = _DONE
        # Nothing is acknowledged before what was decided of it is durable.
        for case, why in await self._outbox.record(events):
            case.outcome = Retry(why)

    async def _examine(self, cases: list[Case]) -> None:
        """Ask the registry, refreshing it where it is too old to say."""
        now = self._clock()
        as_of = self._keeper.registry.as_of
        # Clocks differ: what fast saw cannot have been later than when it was received here.
        unclear = [
            case
            for case in cases
            if not self._ask(case, current=as_of > min(case.escalated.escalated_at, now))
        ]
        if unclear:
            refreshed = await self._keeper.refresh_since(now)
            for case in unclear:
                if not self._ask(case, current=refreshed):
                    case.outcome = Retry("the registry cannot be read")

    def _ask(self, case: Case, *, current: bool) -> bool:
        """Ask the registry about one command; False when it is too old to say."""
        now = self._clock()
        verdict = examine(case.escalated, self._keeper.registry, current=current, now=now)
        match verdict:
            case Eligible():
                case.eligible = verdict
                self._windows.record(case.pair, case.command.source, verdict.route.fairness, now)
            case Refusal():
                case.refusal = verdict
            case Refresh():
                return False
        return True

    async def _count_bans(self, cases: list[Case]) -> None:
        """Count each new ban. It is bookkeeping: a command does not wait for it."""
        reports = {
            case.escalated.dominance.ban_id: case for case in cases if case.escalated.dominance is not None
        }
        for case in reports.values():
            if case.escalated.dominance is None:
                continue
            try:
                placed = await self._bans.note(case.command, case.escalated.dominance)
            except SnavioError as error:
                self._log.warning(LogEvent.TASK_TOLERATED, task="count-bans", error=error)
                continue
            if placed is not None:
                self._telemetry.measure(metrics.BANS, scope="global")
                self._log.info(
                    LogEvent.BAN_PLACED, source=placed.source, target=placed.target, until=placed.until
                )

    async def _park_undeliverable(self, cases: list[Case]) -> None:
        """Keep what no target would take where operators can replay it from."""
        lost = [
            case
            for case in cases
            if case.refusal is not None and case.refusal.reason is FailedReason.DELIVERY_FAILURE
        ]
        if not lost:
            return
        messages = [
            Outgoing(case.message.body, attributes={"snavio.reason": FailedReason.DELIVERY_FAILURE.value})
            for case in lost
        ]
        try:
            answers = await self._queues.send(self._parking, messages)
        except SnavioError as error:
            for case in lost:
                case.outcome = Retry(f"could not be kept for replay: {error}")
            return
        for case, fault in zip(lost, answers, strict=True):
            if fault is not None:
                case.outcome = Retry(f"could not be kept for replay: {fault}")

    def _report(self, case: Case, events: list[tuple[Case, Event]]) -> None:
        command, message_id, now = case.command, case.message.id, self._clock()
        if case.refusal is not None:
            self._count_refusal(case, case.refusal)
            log_command(self._log, command, "failed", case.refusal.reason.value)
            events.append((case, failed_event(command, message_id, case.refusal, now)))
            return
        at = case.sent_at or now
        delivered = delivered_event(
            command,
            message_id,
            path="slow",
            at=at,
            at_text=format_time(at),
            possible_duplicate=case.claim is not None and case.claim.possible_duplicate,
        )
        events.append((case, delivered))
        log_command(self._log, command, "delivered")
        self._feed.tally.dispatched(command.source, *case.pair, delivered.dispatch_latency_ms)
        self._telemetry.measure(metrics.COMMANDS, service="slow", outcome="delivered", reason="")
        if case.shadowed_ms is not None:
            self._telemetry.measure(metrics.LIMIT_SHADOWED, path="slow")
            events.append((case, over_limit_event(command, message_id, case.shadowed_ms, now)))

    def _count_refusal(self, case: Case, refusal: Refusal) -> None:
        reason = refusal.reason
        measure = self._telemetry.measure
        measure(metrics.COMMANDS, service="slow", outcome="failed", reason=reason.value)
        self._feed.tally.rejected(case.command.source, case.command.target, case.command.name, reason.value)
        match reason:
            case FailedReason.ROUTE_MISSING:
                measure(metrics.MISROUTES, path="slow")
            case FailedReason.ACL_DENY:
                measure(metrics.ACL_DENIALS, path="slow")
            case FailedReason.RATE_LIMIT_EXCEEDED:
                measure(metrics.LIMIT_REJECTIONS, path="slow", reason=refusal.sub_reason or "limit")
            case FailedReason.FAIRNESS_VIOLATION:
                measure(metrics.FAIRNESS_REJECTIONS)
            case FailedReason.DELIVERY_FAILURE:
                measure(metrics.DELIVERY_FAILURES, path="slow")
