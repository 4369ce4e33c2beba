"""Fast's handler: decide on commands from memory, deliver them, escalate the rest, tell what became of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from snavio.aws.errors import SnavioError
from snavio.aws.ports import MAX_BATCH, Queues
from snavio.aws.values import Outgoing, Received
from snavio.dispatch.command_log import log_command
from snavio.dispatch.delivery import Delivery
from snavio.dispatch.notices import Notices
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.dispatch.reports import ban_events, delivered_event, duplicate_event, escalated_event
from snavio.dispatch.stats_feed import StatsFeed
from snavio.dispatch.targets import target_message
from snavio.dispatch.tracing import send_span
from snavio.domain.dedupe import HandedOn
from snavio.domain.models import DispatchMode
from snavio.domain.warm import Deliver, DropRepeat, Escalate, decide_warm
from snavio.fast.state import WarmState
from snavio.registry.keeper import Keeper
from snavio.registry.uses import GrantUse, GrantUses
from snavio.registry.view import Registry
from snavio.runtime import metrics
from snavio.runtime.logs import Log
from snavio.runtime.outcome import Dead, Done, Outcome, Retry
from snavio.runtime.telemetry import Telemetry
from snavio.runtime.together import together
from snavio.wire.commands import Admitted, Escalated, EscalationReason, decode_admitted, encode
from snavio.wire.events import Event
from snavio.wire.names import tenant_of
from snavio.wire.times import format_time

_DONE = Done()


class _Work:
    """What a batch comes to, gathered while its effects are seen through."""

    __slots__ = ("batch", "escalations", "events", "now", "now_text", "outcomes", "sends")

    def __init__(self, batch: Sequence[Received], now: float) -> None:
        self.batch = batch
        self.now = now
        self.now_text = format_time(now)
        self.outcomes: list[Outcome] = [_DONE] * len(batch)
        self.sends: dict[str, list[tuple[int, Admitted]]] = {}
        self.escalations: list[tuple[int, Admitted, Escalate]] = []
        self.events: list[tuple[int, Event]] = []


class FastHandler:
    """Delivers batches from the fast queue without asking anyone.

    Nothing in the path of a message reads DynamoDB, KMS or S3; the one write is the outbox record of what was done.
    """

    def __init__(
        self,
        *,
        queues: Queues,
        slow_queue: str,
        keeper: Keeper,
        state: WarmState,
        uses: GrantUses,
        delivery: Delivery,
        outbox: OutboxWriter,
        notices: Notices,
        feed: StatsFeed,
        mode: DispatchMode,
        clock: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
    ) -> None:
        self._queues = queues
        self._slow_queue = slow_queue
        self._keeper = keeper
        self._state = state
        self._uses = uses
        self._delivery = delivery
        self._outbox = outbox
        self._notices = notices
        self._feed = feed
        self._mode = mode
        self._clock = clock
        self._log = log
        self._telemetry = telemetry

    async def handle(self, batch: Sequence[Received]) -> Sequence[Outcome]:
        """Decide on each command of a batch and see its effects through."""
        work = _Work(batch, self._clock())
        registry = self._keeper.registry
        mode = registry.settings.dispatch_mode or self._mode
        for index, message in enumerate(batch):
            self._decide(work, index, message, registry, mode)
        await self._deliver(work)
        await self._escalate(work)
        # What is told is done, though the telling of its neighbour fails.
        for index, why in await self._outbox.record(work.events):
            work.outcomes[index] = Retry(why)
        return work.outcomes

    def _decide(
        self, work: _Work, index: int, message: Received, registry: Registry, mode: DispatchMode
    ) -> None:
        try:
            command = decode_admitted(message.body)
        except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
            work.outcomes[index] = Dead(f"not a message of shield's: {problem}")
            return
        now = work.now
        decision = decide_warm(command, message.id, registry, self._state, mode, now)
        match decision:
            case Deliver():
                route = decision.route
                self._uses.note(
                    GrantUse(
                        command.source, route.target, route.command, command.id, now, now - registry.as_of
                    )
                )
                ban = self._state.windows.record(
                    (route.target, route.command), command.source, route.fairness, now
                )
                if ban is not None:
                    self._telemetry.measure(metrics.BANS, scope="worker")
                    self._notices.add(ban_events(command, route, ban, now))
                queue = self._delivery.url_of(route.queue_arn)
                work.sends.setdefault(queue, []).append((index, command))
            case Escalate():
                work.escalations.append((index, command, decision))
            case DropRepeat():
                if decision.escalated is not None:
                    # The first time it may have been left untold; told again, it is the same event.
                    event = escalated_event(command, message.id, decision.escalated, now)
                    work.events.append((index, event))
                else:
                    self._telemetry.measure(metrics.DEDUP_PREVENTED, path="fast")
                    work.events.append((index, duplicate_event(command, message.id, now)))

    async def _deliver(self, work: _Work) -> None:
        await together(*(self._send(work, queue, sends) for queue, sends in work.sends.items()))

    async def _send(self, work: _Work, queue: str, sends: list[tuple[int, Admitted]]) -> None:
        messages = [target_message(command, path="fast", at_text=work.now_text) for _, command in sends]
        answers = await self._delivery.send(queue, messages)
        at = self._clock()
        at_text = format_time(at)
        tally = self._feed.tally
        logging = self._log.enabled("debug")
        for (index, command), unsent in zip(sends, answers, strict=True):
            if unsent is None:
                event = delivered_event(command, work.batch[index].id, path="fast", at=at, at_text=at_text)
                work.events.append((index, event))
                if logging:
                    log_command(self._log, command, "delivered")
                tally.dispatched(command.source, command.target, command.name, event.dispatch_latency_ms)
            else:
                # Slow owns retrying: it waits without holding up what is warm.
                self._telemetry.measure(metrics.DELIVERY_FAILURES, path="fast")
                work.escalations.append((index, command, Escalate(EscalationReason.DELIVERY_RETRY)))
        sent = sum(1 for unsent in answers if unsent is None)
        if sent and self._telemetry.measuring:
            self._telemetry.measure(metrics.COMMANDS, sent, service="fast", outcome="delivered", reason="")

    async def _escalate(self, work: _Work) -> None:
        starts = range(0, len(work.escalations), MAX_BATCH)
        tens = [work.escalations[start : start + MAX_BATCH] for start in starts]
        await together(*(self._escalate_ten(work, ten) for ten in tens))

    async def _escalate_ten(self, work: _Work, escalations: list[tuple[int, Admitted, Escalate]]) -> None:
        messages = [self._escalation(command, escalate, work.now) for _, command, escalate in escalations]
        try:
            with send_span(self._telemetry, self._slow_queue, messages):
                answers = await self._queues.send(self._slow_queue, messages)
        except SnavioError as error:
            for index, _, _ in escalations:
                work.outcomes[index] = Retry(f"could not be escalated: {error}")
            return
        for (index, command, escalate), fault in zip(escalations, answers, strict=True):
            if fault is not None:
                work.outcomes[index] = Retry(f"could not be escalated: {fault}")
                continue
            message_id = work.batch[index].id
            event = escalated_event(command, message_id, escalate.reason, work.now)
            work.events.append((index, event))
            log_command(self._log, command, "escalated", escalate.reason.value)
            self._telemetry.measure(metrics.ESCALATIONS, reason=escalate.reason.value)
            if escalate.strict:
                self._state.escalated(command, HandedOn(message_id, escalate.reason), work.now)
                self._telemetry.measure(metrics.DEDUP_STRICT, path="fast")
                self._telemetry.measure(metrics.DEDUP_ESCALATIONS)

    def _escalation(self, command: Admitted, escalate: Escalate, now: float) -> Outgoing:
        message = Escalated(
            command=command,
            reason=escalate.reason,
            escalated_at=now,
            dominance=escalate.dominance,
            registry_seq=self._keeper.registry.seq,
        )
        attributes = {"traceparent": command.traceparent} if command.traceparent else {}
        return Outgoing(encode(message), group=tenant_of(command.source), attributes=attributes)
