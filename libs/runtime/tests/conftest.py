"""What the tests of the runtime share: queues whose calls can be made to fail, and recorded logs and telemetry."""

from __future__ import annotations

from collections import defaultdict

import anyio
import pytest

from snavio.aws.memory.queues import Held, MemoryQueues
from snavio.aws.values import Outgoing
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import RecordingTelemetry, virtual_now


class FlakyQueues(MemoryQueues):
    """Queues in memory that note each call; `failures` are raised by coming calls, `faults` given for coming entries."""

    def __init__(self) -> None:
        super().__init__(virtual_now)
        self.calls: list[tuple[str, float, list]] = []
        self.failures: dict[str, list[Exception]] = defaultdict(list)
        self.faults: dict[str, list[Exception | None]] = defaultdict(list)
        self.open_polls = 0
        self._put = 0

    def put(self, queue: str, *bodies: str, **fields) -> None:
        now = virtual_now()
        for body in bodies:
            self._put += 1
            self.queues[queue].add(Held(f"m{self._put:03}", Outgoing(body, **fields), now, now))
        self.wake()

    def held(self, queue: str) -> list[Held]:
        return list(self.queues[queue].messages.values())

    def bodies(self, queue: str) -> list[str]:
        return self.queues[queue].bodies()

    def visible(self, queue: str) -> list[str]:
        return [held.message.body for held in self.held(queue) if held.visible_at <= virtual_now()]

    def called(self, operation: str) -> list[list]:
        return [entries for name, _, entries in self.calls if name == operation]

    async def receive(self, queue, **how):
        self.open_polls += 1
        try:
            self._note("receive", [queue])
            return await super().receive(queue, **how)
        finally:
            self.open_polls -= 1

    async def send(self, queue, messages):
        return await self._flaky("send", super().send, queue, messages)

    async def delete(self, queue, receipts):
        return await self._flaky("delete", super().delete, queue, receipts)

    async def set_visibility(self, queue, timeouts):
        return await self._flaky("set_visibility", super().set_visibility, queue, timeouts)

    async def _flaky(self, operation, act, queue, entries):
        self._note(operation, list(entries))
        await anyio.sleep(0.001)
        faults = [self.faults[operation].pop(0) if self.faults[operation] else None for _ in entries]
        sound = [entry for entry, fault in zip(entries, faults, strict=True) if fault is None]
        answers = iter(await act(queue, sound) if sound else [])
        return [next(answers) if fault is None else fault for fault in faults]

    def _note(self, operation: str, entries: list) -> None:
        self.calls.append((operation, anyio.current_time(), entries))
        if self.failures[operation]:
            raise self.failures[operation].pop(0)


@pytest.fixture
def queues() -> FlakyQueues:
    """With a queue `work` and its dead letters, where what was received five times in vain goes."""
    queues = FlakyQueues()
    dead_letters = queues.create("work-dlq")
    queues.create("work", max_receive_count=5, dead_letters=dead_letters)
    return queues


@pytest.fixture
def lines() -> list[dict]:
    return []


@pytest.fixture
def log(lines):
    return recording_log(lines)


@pytest.fixture
def telemetry() -> RecordingTelemetry:
    return RecordingTelemetry()
