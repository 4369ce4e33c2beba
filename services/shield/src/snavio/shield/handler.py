"""Shield's handler: screen each message, pass on what is genuine, tell the senders of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Queues
from snavio.aws.values import Outgoing, Received
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.dispatch.reports import invalid_event, key_event, skew_event, unreadable_event
from snavio.dispatch.tracing import send_span
from snavio.domain.freshness import Phase
from snavio.domain.screening import KeyReport, Passed, Refused, Screening, ScreeningPolicy, Unreadable, screen
from snavio.registry.keeper import Keeper
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.runtime.outcome import Dead, Done, Outcome, Retry
from snavio.runtime.telemetry import Telemetry
from snavio.shield.key_reports import KeyReports
from snavio.wire.commands import Admitted, encode
from snavio.wire.events import Event
from snavio.wire.names import PLATFORM_TENANT, tenant_of

_DONE = Done()
_HMAC_REASONS = frozenset({"hmac-missing", "hmac-unknown-key", "hmac-expired-key", "hmac-mismatch"})


class ShieldHandler:
    """Screens batches from the ingress queue.

    A command is acknowledged once it is in the fast queue, a refusal once its event is in the outbox; what cannot be
    read goes to the dead-letter queue as it is.
    """

    def __init__(
        self,
        *,
        queues: Queues,
        fast_queue: str,
        keeper: Keeper,
        outbox: OutboxWriter,
        policy: ScreeningPolicy,
        key_reports: KeyReports,
        clock: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
    ) -> None:
        self._queues = queues
        self._fast_queue = fast_queue
        self._keeper = keeper
        self._outbox = outbox
        self._policy = policy
        self._key_reports = key_reports
        self._clock = clock
        self._log = log
        self._telemetry = telemetry

    async def handle(self, batch: Sequence[Received]) -> Sequence[Outcome]:
        """Decide on each message of a batch and see its effects through."""
        now = self._clock()
        keeper = self._keeper
        if keeper.registry.keys_phase(now) is Phase.EXPIRED and not await keeper.refresh_since(now):
            return [Retry("the registry cannot be read")] * len(batch)
        screened = [self._screen(message) for message in batch]
        if any(isinstance(one, Refused) and one.provisional for one in screened):
            screened = await self._screen_again(batch, screened, now)
        sent = await self._pass_on(batch, screened)
        outcomes: list[Outcome] = []
        told: list[tuple[int, Event]] = []
        for index, (message, one, fault) in enumerate(zip(batch, screened, sent, strict=True)):
            events: list[Event] = []
            outcomes.append(Retry(fault) if fault else self._conclude(message, one, now, events))
            told += [(index, event) for event in events]
        # Nothing is acknowledged before it is told. A command already passed on is then passed on again and delivered
        # as the at-least-once promise allows, or once where its route is strict.
        for index, why in await self._outbox.record(told):
            outcomes[index] = Retry(why)
        return outcomes

    def _screen(self, message: Received) -> Screening:
        return screen(message.body, message.sent_at, self._keeper.registry, self._policy)

    async def _screen_again(
        self, batch: Sequence[Received], screened: list[Screening], now: float
    ) -> list[Screening]:
        """A key or source not known yet may have been registered a moment ago: look again before refusing."""
        await self._keeper.refresh_since(now)
        return [
            self._screen(message) if isinstance(one, Refused) and one.provisional else one
            for message, one in zip(batch, screened, strict=True)
        ]

    async def _pass_on(self, batch: Sequence[Received], screened: list[Screening]) -> list[str | None]:
        """Send what passed to fast; for each message the fault that keeps it here, if any."""
        faults: list[str | None] = [None] * len(batch)
        passed = [index for index, one in enumerate(screened) if isinstance(one, Passed)]
        if not passed:
            return faults
        messages = [internal_message(one.command) for one in screened if isinstance(one, Passed)]
        try:
            with send_span(self._telemetry, self._fast_queue, messages):
                answers = await self._queues.send(self._fast_queue, messages)
        except SnavioError as error:
            for index in passed:
                faults[index] = f"could not be passed on: {error}"
            return faults
        for index, answer in zip(passed, answers, strict=True):
            faults[index] = None if answer is None else f"could not be passed on: {answer}"
        return faults

    def _conclude(self, message: Received, one: Screening, now: float, events: list[Event]) -> Outcome:
        match one:
            case Passed():
                self._telemetry.measure(metrics.COMMANDS, service="shield", outcome="passed", reason="")
                if one.skew is not None:
                    self._telemetry.measure(metrics.SKEW, abs(one.skew.skew_seconds))
                    events.append(skew_event(one.command, message.id, one.skew, now))
                if one.key is not None:
                    self._report_key(one.command, message, one.key, now, events)
                return _DONE
            case Refused():
                self._count_refusal(one.reason.value)
                self._log_refusal(message, one)
                events.append(self._refusal_event(message, one, now))
                return _DONE
            case Unreadable():
                self._count_refusal(one.reason.value)
                events.append(unreadable_event(one, message.id, now))
                return Dead(f"{one.reason}: {one.detail}")

    def _log_refusal(self, message: Received, refused: Refused) -> None:
        facts = refused.facts
        self._log.info(
            LogEvent.COMMAND,
            message_id=message.id,
            command_id=facts.command_id,
            source=facts.source,
            target=facts.target,
            command=facts.name,
            outcome="invalid",
            reason=refused.reason.value,
        )

    def _refusal_event(self, message: Received, refused: Refused, now: float) -> Event:
        tenant = tenant_of(refused.facts.source or "")
        if not self._keeper.registry.knows_tenant(tenant):
            tenant = PLATFORM_TENANT
        return invalid_event(refused, message.id, tenant=tenant, received_at=message.sent_at, at=now)

    def _report_key(
        self, command: Admitted, message: Received, key: KeyReport, now: float, events: list[Event]
    ) -> None:
        self._telemetry.measure(metrics.LEGACY_KEY_USED)
        due = self._key_reports.due(command.source, key, now)
        events.extend(key_event(command, message.id, report, now) for report in due)

    def _count_refusal(self, reason: str) -> None:
        self._telemetry.measure(metrics.COMMANDS, service="shield", outcome="invalid", reason=reason)
        if reason in _HMAC_REASONS:
            self._telemetry.measure(metrics.HMAC_FAILURES, reason=reason)


def internal_message(command: Admitted) -> Outgoing:
    """A command on its way to fast; grouped by tenant, so that no tenant's backlog delays another's."""
    attributes = {"traceparent": command.traceparent} if command.traceparent else {}
    return Outgoing(encode(command), group=tenant_of(command.source), attributes=attributes)
