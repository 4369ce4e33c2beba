"""The queue loop of a target: long polls, a task a message, visibility kept, deletions in batches, drained on request.

A message is deleted only when it was handled or lies in the dead-letter queue; whatever else happens, it comes back.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable

import msgspec

from snavio.sdk.batching import backoff_seconds
from snavio.sdk.deletions import Deletions
from snavio.sdk.handling import Again, Dead, Done, Handling, Outcome
from snavio.sdk.inbox import MAX_BATCH, Inbox, Message

_log = logging.getLogger("snavio.sdk")
_FAREWELL_SECONDS = 3.0


class TargetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a target takes its commands."""

    concurrency: int = 10
    """How many commands are in hand at once."""
    polls: int = 2
    """How many long polls are open at once."""
    wait_seconds: int = 10
    """How long an empty poll waits, 20 at most; also how long a drain may have to wait for it."""
    visibility_seconds: int = 30
    """How long the queue hides a message in hand; renewed every third of it while the handler works."""
    attempts: int = 10
    """How often a command is tried before it is dead; the queue's own maximum when that is lower."""
    retry_seconds: float = 1.0
    """How long a failed command waits the first time; twice as long each further time, five minutes at most."""
    drain_seconds: float = 25.0
    """How long handlers may still work after a stop is asked for."""


class Intake:
    """Consumes one inbox until drained."""

    def __init__(
        self, inbox: Inbox, handling: Handling, *, options: TargetOptions, dlq_url: str | None
    ) -> None:
        self._inbox = inbox
        self._handling = handling
        self._options = options
        self._dlq_url = dlq_url
        self._in_hand: dict[str, Message] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reserved = 0
        self._room = asyncio.Event()
        self._draining = asyncio.Event()
        self._deadline = 0.0
        self._deletions = Deletions(inbox, self._forget)

    def drain(self, seconds: float | None = None) -> None:
        """Take nothing more; finish what is in hand, or hand it back when time is up."""
        if not self._draining.is_set():
            within = self._options.drain_seconds if seconds is None else seconds
            self._deadline = asyncio.get_running_loop().time() + within
        self._draining.set()
        self._room.set()

    async def run(self) -> None:
        """Consume until drained."""
        heartbeat = asyncio.create_task(self._beat(), name="snavio-heartbeat")
        try:
            async with asyncio.TaskGroup() as polls:
                for _ in range(self._options.polls):
                    polls.create_task(self._poll())
            # Polls have ended, so nothing comes in any more.
            if self._tasks:
                left = self._deadline - asyncio.get_running_loop().time()
                await asyncio.wait(self._tasks, timeout=max(0.0, left))
        finally:
            await self._hand_back(heartbeat)

    async def _hand_back(self, heartbeat: asyncio.Task[None]) -> None:
        leftover = list(self._tasks)
        for task in [*leftover, heartbeat]:
            task.cancel()
        await asyncio.gather(*leftover, heartbeat, return_exceptions=True)
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await self._deletions.flush()
                await self._hold(list(self._in_hand), 0)
        except TimeoutError:
            _log.warning("%d messages were not handed back and will return by themselves", len(self._in_hand))

    async def _poll(self) -> None:
        failures = 0
        while (wanted := await self._make_room()) > 0:
            try:
                messages = await self._inbox.receive(
                    max_messages=wanted,
                    wait_seconds=self._options.wait_seconds,
                    visibility_seconds=self._options.visibility_seconds,
                )
                failures = 0
            except Exception as error:  # noqa: BLE001 - a worker outlives its queue's bad moments
                messages = []
                failures += 1
                _log.warning("The queue could not be read: %s", error)
            finally:
                self._reserved -= wanted
            for message in messages:
                self._in_hand[message.receipt] = message
                task = asyncio.create_task(self._process(message))
                self._tasks.add(task)
                task.add_done_callback(self._ended)
            if failures:
                await _until(
                    self._draining, backoff_seconds(failures, random.random(), shortest=0.5, longest=30.0)
                )

    async def _make_room(self) -> int:
        """Reserve room for a batch and say how large; 0 when draining."""
        while not self._draining.is_set():
            free = self._options.concurrency - len(self._tasks) - self._reserved
            if free > 0:
                wanted = min(MAX_BATCH, free)
                self._reserved += wanted
                return wanted
            self._room.clear()
            await self._room.wait()
        return 0

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.set()

    async def _process(self, message: Message) -> None:
        outcome: Outcome = await self._handling.handle(message)
        if isinstance(outcome, Dead):
            outcome = await self._bury(message, outcome)
        if isinstance(outcome, Done):
            self._deletions.add(message.receipt)
        elif isinstance(outcome, Again):
            # Forgotten first, or a heartbeat in between would set the time it just got.
            self._forget(message.receipt)
            await self._held([message.receipt], math.ceil(outcome.seconds))

    async def _bury(self, message: Message, dead: Dead) -> Outcome:
        _log.error("Message %s is dead: %s", message.id, dead.reason)
        if self._dlq_url is not None:
            try:
                await self._inbox.bury(message, self._dlq_url, dead.reason)
            except Exception as error:  # noqa: BLE001 - it stays in the queue, which will move it by itself in the end
                _log.warning("Message %s could not be put in the dead-letter queue: %s", message.id, error)
            else:
                return Done()
        return Again(min(300.0, self._options.retry_seconds * 2 ** min(message.receives, 16)), dead.reason)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._options.visibility_seconds / 3)
            await self._hold(list(self._in_hand), self._options.visibility_seconds)
            await _tolerated(self._handling.renew_claims, "Claims could not be renewed")

    async def _hold(self, receipts: list[str], seconds: int) -> None:
        for start in range(0, len(receipts), MAX_BATCH):
            # Some may have been deleted meanwhile.
            batch = [receipt for receipt in receipts[start : start + MAX_BATCH] if receipt in self._in_hand]
            if batch:
                await self._held(batch, seconds)

    async def _held(self, receipts: list[str], seconds: int) -> None:
        await _tolerated(lambda: self._inbox.hold(receipts, seconds), "Visibility was not changed")

    def _forget(self, receipt: str) -> None:
        self._in_hand.pop(receipt, None)


async def _tolerated(work: Callable[[], Awaitable[object]], complaint: str) -> None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 - at worst a message comes back early, which the store is for
        _log.warning("%s: %s", complaint, error)


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
