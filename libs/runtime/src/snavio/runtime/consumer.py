"""The queue loop: long polls, batches to a handler, outcomes performed, visibility kept, drained on request.

A message is deleted only after its handler said `Done`, or once it is in the dead-letter queue. Whatever else happens,
including the death of the process, it returns to the queue.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Annotated

import anyio
import msgspec
from msgspec import Meta

from snavio.aws.errors import Permanent, Transient
from snavio.aws.ports import MAX_BATCH
from snavio.runtime import messaging, metrics
from snavio.runtime.backoff import backoff_seconds
from snavio.runtime.in_hand import Held, InHand
from snavio.runtime.log_events import LogEvent
from snavio.runtime.outcome import Retry
from snavio.runtime.settlement import Settlement, Tally
from snavio.runtime.telemetry import SILENT
from snavio.runtime.visibility import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snavio.aws.ports import Queues
    from snavio.aws.values import Received
    from snavio.runtime.common_config import CommonConfig
    from snavio.runtime.logs import Log
    from snavio.runtime.messaging import ContextOf
    from snavio.runtime.outcome import Handler, Outcome
    from snavio.runtime.telemetry import Telemetry

_PERMANENT_TRIES = 5
_FAREWELL_SECONDS = 3.0


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How one queue is consumed. The defaults are those of `CommonConfig`, which documents them."""

    polls: Annotated[int, Meta(ge=1)] = 4
    handlers: Annotated[int, Meta(ge=1)] = 8
    batches_in_hand: Annotated[int, Meta(ge=1)] = 16
    wait_seconds: Annotated[int, Meta(ge=1, le=20)] = 10
    visibility_seconds: Annotated[int, Meta(ge=2)] = 30
    stuck_seconds: float = 300.0
    handler_batch: Annotated[int, Meta(ge=1)] = MAX_BATCH
    """How many waiting messages a handler is given at once, at most."""
    alone_from: int = 3
    """From which receive on a message is given to the handler alone, in case it is what makes the handler raise."""

    @classmethod
    def of(cls, config: CommonConfig, *, handler_batch: int = MAX_BATCH) -> ConsumerSettings:
        """The settings a service was started with; its handler may take more than one receive brings.

        Polls wait no longer than draining has time for: one that had to be cancelled could take messages into flight
        just as they are handed back.
        """
        return cls(
            polls=config.polls,
            handlers=config.handlers,
            batches_in_hand=config.batches_in_hand,
            wait_seconds=max(1, min(config.wait_seconds, int(config.drain_seconds) - 1)),
            visibility_seconds=config.visibility_seconds,
            stuck_seconds=config.stuck_seconds,
            handler_batch=handler_batch,
        )


class ConsumerStatus(msgspec.Struct, frozen=True):
    """What a consumer is doing right now."""

    queue: str
    in_hand: int
    waiting: int
    oldest_in_hand_seconds: float
    longest_handled_seconds: float
    draining: bool
    tally: Tally


class Consumer:
    """Consumes one queue with one handler until drained.

    `queue` and `dlq` are URLs. `context_of` finds the trace a message was created in, by default in its attributes.
    """

    def __init__(
        self,
        *,
        queues: Queues,
        queue: str,
        dlq: str,
        handler: Handler,
        log: Log,
        settings: ConsumerSettings | None = None,
        telemetry: Telemetry = SILENT,
        context_of: ContextOf = messaging.context_in_attributes,
        now: Callable[[], float] = time.time,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self.name = queue.rstrip("/").rpartition("/")[2]
        self._queues = queues
        self._queue = queue
        self._handler = handler
        self._settings = settings or ConsumerSettings()
        self._log = log
        self._telemetry = telemetry
        self._context_of = context_of
        self._now = now
        self._roll = roll
        self._tally = Tally()
        self._in_hand = InHand(self._settings.batches_in_hand * MAX_BATCH)
        self._settlement = Settlement(
            queues=queues,
            queue=queue,
            dlq=dlq,
            name=self.name,
            in_hand=self._in_hand,
            tally=self._tally,
            roll=roll,
            log=log,
            telemetry=telemetry,
        )
        self._heartbeat = Heartbeat(
            queues=queues,
            queue=queue,
            name=self.name,
            in_hand=self._in_hand,
            visibility_seconds=self._settings.visibility_seconds,
            log=log,
            telemetry=telemetry,
        )
        self._polling = self._settings.polls
        self._draining = anyio.Event()
        self._deadline = float("inf")
        self._work: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Consume until drained. Raises when the queue stays unusable or a handler breaks its contract."""
        try:
            async with anyio.create_task_group() as support:
                support.start_soon(self._settlement.run)
                support.start_soon(self._heartbeat.run)
                await self._receive_and_handle()
                with anyio.CancelScope(deadline=self._deadline):
                    await self._settlement.flush()
                support.cancel_scope.cancel()
        finally:
            # Also when aborted or failed: what is in hand should not wait for its visibility to run out.
            with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
                await self._settlement.hand_back()

    def drain(self, seconds: float) -> None:
        """Stop receiving; `run` returns when what is in hand is finished, or has been handed back after `seconds`.

        Polls under way are left to end, since a cancelled one may take messages into flight that nobody then holds;
        what they bring is handled like the rest.
        """
        if not self._draining.is_set():
            self._draining.set()
            self._deadline = anyio.current_time() + seconds
            if self._work is not None:
                self._work.deadline = self._deadline
            self._in_hand.room.ring()

    def status(self) -> ConsumerStatus:
        """What it is doing."""
        now = anyio.current_time()
        oldest, longest = self._in_hand.oldest(), self._in_hand.longest_handled()
        return ConsumerStatus(
            queue=self.name,
            in_hand=len(self._in_hand),
            waiting=self._in_hand.waiting,
            oldest_in_hand_seconds=0.0 if oldest is None else round(now - oldest, 3),
            longest_handled_seconds=0.0 if longest is None else round(now - longest, 3),
            draining=self._draining.is_set(),
            tally=msgspec.structs.replace(self._tally),
        )

    def ailment(self) -> str | None:
        """Why it should be restarted, if it should: a handler that seems never to return."""
        longest = self.status().longest_handled_seconds
        if longest <= self._settings.stuck_seconds:
            return None
        return f"{self.name}: a handler has been at work for {longest:.0f} s"

    async def _receive_and_handle(self) -> None:
        async with anyio.create_task_group() as work:
            self._work = work.cancel_scope
            work.cancel_scope.deadline = self._deadline
            for _ in range(self._settings.polls):
                work.start_soon(self._poll)
            for _ in range(self._settings.handlers):
                work.start_soon(self._handle)

    async def _poll(self) -> None:
        failures = 0
        while await self._make_room():
            messages: list[Received] = []
            try:
                messages = await self._receive()
                failures = 0
            except (Transient, Permanent) as error:
                failures += 1
                self._telemetry.measure(metrics.QUEUE_FAULTS, 1, queue=self.name, operation="receive")
                self._log.warning(
                    LogEvent.QUEUE_RECEIVE_FAILED, error=error, queue=self.name, failures=failures
                )
                if isinstance(error, Permanent) and failures >= _PERMANENT_TRIES:
                    raise
            finally:
                now = anyio.current_time()
                self._in_hand.fill(messages, now=now, visible_at=now + self._settings.visibility_seconds)
            if failures:
                with anyio.move_on_after(backoff_seconds(failures, self._roll(), base=0.5, cap=30)):
                    await self._draining.wait()
        self._polling -= 1
        if not self._polling:
            self._in_hand.work.ring()

    async def _make_room(self) -> bool:
        """Wait until there is room for another batch; False when draining."""
        while not self._draining.is_set():
            if self._in_hand.reserve():
                return True
            await self._in_hand.room.wait()
        return False

    async def _receive(self) -> list[Received]:
        started_at = self._now()
        messages = await self._queues.receive(
            self._queue,
            max_messages=MAX_BATCH,
            wait_seconds=self._settings.wait_seconds,
            visibility_seconds=self._settings.visibility_seconds,
        )
        if not messages:
            return messages
        self._tally.received += len(messages)
        if self._telemetry.measuring:
            now = self._now()
            for message in messages:
                waited = max(0.0, now - message.sent_at) * 1000
                self._telemetry.measure(metrics.QUEUE_LATENCY, waited, queue=self.name)
        if self._telemetry.tracing:
            links = messaging.links_of(messages, self._context_of)
            with messaging.receiving(self._telemetry, self.name, links, len(messages), started_at=started_at):
                pass
        return messages

    async def _handle(self) -> None:
        alone_from, most = self._settings.alone_from, self._settings.handler_batch
        while True:
            if batch := self._in_hand.next_batch(alone_from=alone_from, most=most):
                self._settlement.settle(batch, await self._outcomes(batch))
            elif self._polling:
                await self._in_hand.work.wait()
            else:
                return

    async def _outcomes(self, batch: list[Held]) -> Sequence[Outcome]:
        started = anyio.current_time()
        for held in batch:
            held.handed_at = started
        messages = [held.message for held in batch]
        try:
            outcomes = await self._call_handler(messages)
        except Exception as error:  # noqa: BLE001 - a hostile message must never end a worker
            self._log.error(
                LogEvent.HANDLER_RAISED,
                error=error,
                queue=self.name,
                message_ids=[message.id for message in messages],
            )
            outcomes = [Retry(f"handler raised {type(error).__name__}")] * len(batch)
        if self._telemetry.measuring:
            took = (anyio.current_time() - started) * 1000
            self._telemetry.measure(metrics.QUEUE_HANDLING, took, queue=self.name)
            self._telemetry.measure(metrics.QUEUE_IN_HAND, len(self._in_hand), queue=self.name)
        return outcomes

    async def _call_handler(self, messages: list[Received]) -> Sequence[Outcome]:
        if not self._telemetry.tracing:
            return await self._handler(messages)
        links = messaging.links_of(messages, self._context_of)
        with messaging.processing(self._telemetry, self.name, links, len(messages)):
            return await self._handler(messages)
