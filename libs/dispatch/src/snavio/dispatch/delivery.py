"""Sending to queues that are not ours: in batches per destination, each destination on its own.

A destination that is slow or failing holds up only what is addressed to it: it has a bounded number of sends under way,
a time limit for each, and after repeated failure a pause in which its messages are turned away at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain

import msgspec

from snavio.aws.errors import NotFound, Permanent, SnavioError, Transient
from snavio.aws.ports import MAX_BATCH, Queues
from snavio.aws.values import Fault, Outgoing
from snavio.dispatch.tracing import send_span
from snavio.runtime.telemetry import SILENT, Telemetry
from snavio.runtime.together import together

_MOST_DESTINATIONS = 100_000


class DeliveryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a destination is treated."""

    timeout_seconds: float = 10.0
    sends_at_once: int = 4
    """To one destination, from one worker."""
    waiting_at_once: int = 64
    """Batches that may wait for their turn at one destination before more are turned away."""
    failures_to_pause: int = 5
    pause_seconds: float = 5.0


class Unsent(msgspec.Struct, frozen=True):
    """Why a message was not sent, or may not have been."""

    cause: str
    permanent: bool
    """The queue is gone or refuses us: trying again soon is pointless."""
    uncertain: bool
    """The send may have happened all the same."""


class _Destination:
    __slots__ = ("failures", "paused_until", "turns", "waiting")

    def __init__(self, sends_at_once: int) -> None:
        # asyncio's own here and below: in the path of every batch, and a fraction of what anyio's cost.
        self.turns = asyncio.Semaphore(sends_at_once)
        self.waiting = 0
        self.failures = 0
        self.paused_until = 0.0


class Delivery:
    """Sends messages to target queues."""

    def __init__(
        self,
        queues: Queues,
        policy: DeliveryPolicy,
        *,
        clock: Callable[[], float],
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._queues = queues
        self._policy = policy
        self._clock = clock
        self._telemetry = telemetry
        self._destinations: dict[str, _Destination] = {}

    def url_of(self, queue_arn: str) -> str:
        """The address of a target's queue."""
        return self._queues.url_of(queue_arn)

    async def send(self, queue: str, messages: Sequence[Outgoing]) -> list[Unsent | None]:
        """Send messages to one queue; one answer for each, None for sent. Never raises for the queue's sake."""
        tens = [messages[start : start + MAX_BATCH] for start in range(0, len(messages), MAX_BATCH)]
        answers = await together(*(self._send_in_turn(queue, ten) for ten in tens))
        return list(chain.from_iterable(answers))

    async def _send_in_turn(self, queue: str, messages: Sequence[Outgoing]) -> list[Unsent | None]:
        destination = self._destination(queue)
        if self._clock() < destination.paused_until:
            return [Unsent("paused after repeated failures", permanent=False, uncertain=False)] * len(
                messages
            )
        if destination.waiting >= self._policy.waiting_at_once:
            return [Unsent("too much is waiting for it", permanent=False, uncertain=False)] * len(messages)
        destination.waiting += 1
        try:
            async with destination.turns:
                answers = await self._send_batch(queue, messages)
        finally:
            destination.waiting -= 1
        self._note(destination, answers)
        return answers

    async def _send_batch(self, queue: str, messages: Sequence[Outgoing]) -> list[Unsent | None]:
        try:
            async with asyncio.timeout(self._policy.timeout_seconds):
                with send_span(self._telemetry, queue, list(messages)):
                    faults = await self._queues.send(queue, messages)
        except TimeoutError:
            return [Unsent("no answer in time", permanent=False, uncertain=True)] * len(messages)
        except NotFound:
            return [Unsent("the queue does not exist", permanent=True, uncertain=False)] * len(messages)
        except Permanent as error:
            return [Unsent(error.code or str(error), permanent=True, uncertain=False)] * len(messages)
        except SnavioError as error:
            return [Unsent(str(error), permanent=False, uncertain=True)] * len(messages)
        return [None if fault is None else _unsent(fault) for fault in faults]

    def _destination(self, queue: str) -> _Destination:
        found = self._destinations.get(queue)
        if found is None:
            if len(self._destinations) >= _MOST_DESTINATIONS:
                self._destinations = {url: one for url, one in self._destinations.items() if one.waiting}
            found = self._destinations[queue] = _Destination(self._policy.sends_at_once)
        return found

    def _note(self, destination: _Destination, answers: list[Unsent | None]) -> None:
        if any(answer is None for answer in answers):
            destination.failures = 0
            return
        destination.failures += 1
        if destination.failures >= self._policy.failures_to_pause:
            destination.paused_until = self._clock() + self._policy.pause_seconds


def _unsent(fault: Fault) -> Unsent:
    if isinstance(fault, Transient):
        return Unsent(str(fault), permanent=False, uncertain=False)
    return Unsent(fault.code or str(fault), permanent=True, uncertain=False)
