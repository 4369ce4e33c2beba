"""Keeps messages in hand hidden from other workers for as long as they are in hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from snavio.aws.errors import Permanent, Transient
from snavio.aws.ports import MAX_BATCH
from snavio.runtime import metrics
from snavio.runtime.backoff import MAX_VISIBILITY_SECONDS
from snavio.runtime.log_events import LogEvent
from snavio.runtime.outcome import Retry

if TYPE_CHECKING:
    from snavio.aws.ports import Queues
    from snavio.aws.values import Fault
    from snavio.runtime.in_hand import Held, InHand
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry

_LANES = 8


class Heartbeat:
    """Renews the visibility of everything in hand, waiting messages included, in batches of ten.

    A renewal has three more chances before the visibility runs out. When the queue says a receipt is no longer good
    the message is marked lost: another worker may have it, so one still waiting is not handled here.
    """

    def __init__(
        self,
        *,
        queues: Queues,
        queue: str,
        name: str,
        in_hand: InHand,
        visibility_seconds: int,
        log: Log,
        telemetry: Telemetry,
    ) -> None:
        self._queues = queues
        self._queue = queue
        self._name = name
        self._in_hand = in_hand
        self._seconds = visibility_seconds
        self._log = log
        self._telemetry = telemetry
        self._lanes = anyio.Semaphore(_LANES)

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            await anyio.sleep(self._seconds / 5)
            due = self._due(anyio.current_time())
            if not due:
                continue
            async with anyio.create_task_group() as group:
                for start in range(0, len(due), MAX_BATCH):
                    group.start_soon(self._renew, due[start : start + MAX_BATCH])

    def _due(self, now: float) -> list[Held]:
        soon = now + self._seconds * 0.7
        return [held for held in self._in_hand if held.visible_at <= soon and self._renewable(held, now)]

    def _renewable(self, held: Held, now: float) -> bool:
        # A message on its way back has had its visibility set already; and SQS counts twelve hours from the receive.
        on_its_way_back = isinstance(held.outcome, Retry)
        exhausted = now + self._seconds > held.received_at + MAX_VISIBILITY_SECONDS
        return not (held.lost or on_its_way_back or exhausted)

    async def _renew(self, batch: list[Held]) -> None:
        async with self._lanes:
            # Some may have been settled while this batch waited for a lane.
            batch = [held for held in batch if self._in_hand.holds(held)]
            if not batch:
                return
            asked_at = anyio.current_time()
            timeouts = [(held.message.receipt, self._seconds) for held in batch]
            try:
                faults = await self._queues.set_visibility(self._queue, timeouts)
            except (Transient, Permanent) as error:
                self._telemetry.measure(metrics.QUEUE_FAULTS, 1, queue=self._name, operation="renew")
                self._log.warning(LogEvent.QUEUE_VISIBILITY_FAILED, error=error, queue=self._name)
                return
        for held, fault in zip(batch, faults, strict=True):
            self._renewed(held, fault, asked_at)

    def _renewed(self, held: Held, fault: Fault | None, asked_at: float) -> None:
        if fault is None:
            held.visible_at = asked_at + self._seconds
            return
        if not self._in_hand.holds(held):  # settled meanwhile, so of course its receipt is spent
            return
        self._telemetry.measure(metrics.QUEUE_FAULTS, 1, queue=self._name, operation="renew")
        if isinstance(fault, Permanent):
            held.lost = True
            self._log.warning(
                LogEvent.QUEUE_RECEIPT_LOST, error=fault, queue=self._name, message_id=held.message.id
            )
