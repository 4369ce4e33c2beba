"""The `Queues` port in memory."""

from __future__ import annotations

import asyncio
import heapq
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio.lowlevel import checkpoint

from snavio.aws import limits
from snavio.aws.arns import parse_queue_arn
from snavio.aws.errors import NotFound, Permanent
from snavio.aws.memory.clock import ManualClock
from snavio.aws.ports import MAX_BATCH
from snavio.aws.values import Received

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snavio.aws.values import Fault, Outgoing

_ENDPOINT = "memory://sqs"
_ACCOUNT = "000000000000"
_REGION = "eu-central-1"


@dataclass(slots=True)
class Held:
    """A message in a queue. It is in flight while `receipt` is set and `visible_at` lies ahead."""

    id: str
    message: Outgoing
    sent_at: float
    visible_at: float
    receive_count: int = 0
    receipt: str | None = None


@dataclass(slots=True)
class MemoryQueue:
    """A Standard queue; with `dead_letters` a message goes there when received `max_receive_count` times in vain."""

    name: str
    visibility_seconds: int = 30
    max_receive_count: int | None = None
    dead_letters: MemoryQueue | None = None
    messages: dict[str, Held] = field(default_factory=dict[str, Held])
    # Times at which messages become visible. An entry whose message has moved on is skipped when it comes up.
    due: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    # Long polls under way, in the order in which they came.
    polls: dict[asyncio.Future[None], None] = field(default_factory=dict["asyncio.Future[None]", None])

    @property
    def url(self) -> str:
        """What the port names the queue by."""
        return f"{_ENDPOINT}/{_ACCOUNT}/{self.name}"

    @property
    def arn(self) -> str:
        """What policies and routes name the queue by."""
        return f"arn:aws:sqs:{_REGION}:{_ACCOUNT}:{self.name}"

    def bodies(self) -> list[str]:
        """The bodies of all messages, visible or not, in the order sent."""
        return [held.message.body for held in self.messages.values()]

    def in_flight(self, now: float) -> list[Held]:
        """The messages somebody has in hand."""
        return [held for held in self.messages.values() if held.receipt is not None and held.visible_at > now]

    def add(self, held: Held) -> None:
        """Keep a message until its receipt is deleted."""
        self.messages[held.id] = held
        self.hide(held, held.visible_at)

    def hide(self, held: Held, until: float) -> None:
        """Let a message be received again from then on."""
        held.visible_at = until
        heapq.heappush(self.due, (until, held.id))

    def wake(self) -> None:
        """Let every long poll look again."""
        for poll in self.polls:
            _end(poll)

    def next_due(self) -> float | None:
        """When the next message becomes visible, as far as is known now."""
        while self.due:
            at, identity = self.due[0]
            held = self.messages.get(identity)
            if held is not None and held.visible_at == at:
                return at
            heapq.heappop(self.due)
        return None

    def take(self, now: float, maximum: int, hidden_for: int) -> list[Held]:
        """Receive what is visible, moving what was received too often to the dead letters."""
        taken: list[Held] = []
        while len(taken) < maximum:
            at = self.next_due()
            if at is None or at > now:
                break
            held = self.messages[heapq.heappop(self.due)[1]]
            if self.max_receive_count is not None and held.receive_count >= self.max_receive_count:
                self._bury(held, now)
                continue
            held.receive_count += 1
            held.receipt = f"{held.id}/{held.receive_count}"
            taken.append(held)
        for held in taken:
            self.hide(held, now + hidden_for)
        return taken

    def holder_of(self, receipt: str) -> Held | None:
        """The message this receipt still stands for."""
        held = self.messages.get(receipt.partition("/")[0])
        return held if held is not None and held.receipt == receipt else None

    def _bury(self, held: Held, now: float) -> None:
        del self.messages[held.id]
        if self.dead_letters is not None:
            held.receipt = None
            held.visible_at = now
            self.dead_letters.add(held)
            self.dead_letters.wake()


class MemoryQueues:
    """`Queues` in memory. With a `ManualClock` a long poll ends when the clock is advanced, and never by itself."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.queues: dict[str, MemoryQueue] = {}
        self._clock = clock
        self._sent = 0
        self._self_advancing = not isinstance(clock, ManualClock)
        if isinstance(clock, ManualClock):
            clock.on_advance(self.wake)

    def create(
        self,
        name: str,
        *,
        visibility_seconds: int = 30,
        max_receive_count: int | None = None,
        dead_letters: MemoryQueue | None = None,
    ) -> MemoryQueue:
        """Add an empty queue."""
        queue = MemoryQueue(name, visibility_seconds, max_receive_count, dead_letters)
        self.queues[queue.url] = queue
        return queue

    def wake(self) -> None:
        """Let every long poll of every queue look again."""
        for queue in self.queues.values():
            queue.wake()

    def url_of(self, arn: str) -> str:
        """The URL of the queue with this ARN."""
        parts = parse_queue_arn(arn)
        return f"{_ENDPOINT}/{parts.account}/{parts.name}"

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = MAX_BATCH,
        wait_seconds: int = 20,
        visibility_seconds: int | None = None,
    ) -> list[Received]:
        """Up to ten messages, waiting for the first."""
        limits.require_receive(max_messages, wait_seconds, visibility_seconds)
        await checkpoint()
        held_by = self._queue(queue)
        hidden_for = held_by.visibility_seconds if visibility_seconds is None else visibility_seconds
        deadline = self._clock() + wait_seconds
        while True:
            now = self._clock()
            taken = held_by.take(now, max_messages, hidden_for)
            if taken or now >= deadline:
                return [_received(held) for held in taken]
            await self._wait(held_by, now, deadline)

    async def send(self, queue: str, messages: Sequence[Outgoing]) -> list[Fault | None]:
        """Send up to ten messages; what SQS would refuse fails alone."""
        limits.require_entries(len(messages))
        await checkpoint()
        held_by = self._queue(queue)
        now = self._clock()
        outcome: list[Fault | None] = []
        for message in messages:
            measured = limits.measure(message)
            outcome.append(measured if isinstance(measured, Permanent) else None)
            if isinstance(measured, int):
                self._sent += 1
                held_by.add(Held(f"message-{self._sent:08}", message, now, now + message.delay_seconds))
        held_by.wake()
        return outcome

    async def delete(self, queue: str, receipts: Sequence[str]) -> list[Fault | None]:
        """Delete up to ten messages in hand."""
        limits.require_entries(len(receipts))
        await checkpoint()
        held_by = self._queue(queue)
        outcome: list[Fault | None] = []
        for receipt in receipts:
            held = held_by.holder_of(receipt)
            if held is not None:
                del held_by.messages[held.id]
            outcome.append(_stale(receipt) if held is None else None)
        return outcome

    async def set_visibility(self, queue: str, timeouts: Sequence[tuple[str, int]]) -> list[Fault | None]:
        """Hide up to ten messages for longer, or hand them back at once."""
        limits.require_entries(len(timeouts))
        await checkpoint()
        held_by = self._queue(queue)
        now = self._clock()
        outcome: list[Fault | None] = []
        for receipt, seconds in timeouts:
            fault = limits.visibility_fault(seconds)
            held = held_by.holder_of(receipt)
            if fault is None and held is None:
                fault = _stale(receipt)
            elif fault is None and held is not None and held.visible_at <= now:
                fault = Permanent(f"{held.id} is not in flight.", code="MessageNotInflight")
            elif fault is None and held is not None:
                held_by.hide(held, now + seconds)
            outcome.append(fault)
        held_by.wake()
        return outcome

    async def _wait(self, queue: MemoryQueue, now: float, deadline: float) -> None:
        """Until something changed in the queue, or until the clock itself reaches what was waited for."""
        loop = asyncio.get_running_loop()
        poll = loop.create_future()
        queue.polls[poll] = None
        timer = None
        if self._self_advancing:
            due = queue.next_due()
            timer = loop.call_later((deadline if due is None else min(deadline, due)) - now, _end, poll)
        try:
            await poll
        finally:
            del queue.polls[poll]
            if timer is not None:
                timer.cancel()

    def _queue(self, url: str) -> MemoryQueue:
        found = self.queues.get(url)
        if found is None:
            raise NotFound(f"There is no queue {url}.", code="NonExistentQueue")
        return found


def _end(poll: asyncio.Future[None]) -> None:
    if not poll.done():
        poll.set_result(None)


def _stale(receipt: str) -> Permanent:
    return Permanent(f"Receipt {receipt} stands for no message in hand.", code="ReceiptHandleIsInvalid")


def _received(held: Held) -> Received:
    return Received(
        id=held.id,
        receipt=held.receipt or "",
        body=held.message.body,
        receive_count=held.receive_count,
        sent_at=held.sent_at,
        group=held.message.group,
        attributes=dict(held.message.attributes),
    )
