"""A queue in memory whose time is the event loop's and whose calls can be made to fail."""

from __future__ import annotations

from collections import defaultdict

import anyio
import pytest

from snavio.aws.errors import NotFound, Permanent
from snavio.aws.values import Outgoing, Received
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import EPOCH, RecordingTelemetry


class _Stored:
    def __init__(self, number: int, outgoing: Outgoing, sent_at: float) -> None:
        self.id = f"m{number}"
        self.outgoing = outgoing
        self.sent_at = sent_at
        self.visible_at = sent_at
        self.receives = 0
        self.receipt = ""


class FakeQueues:
    """SQS as the port describes it. `failures[operation]` holds errors to raise, `faults[operation]` answers to give."""

    def __init__(self) -> None:
        self.stored: dict[str, list[_Stored]] = defaultdict(list)
        self.calls: list[tuple[str, float, list]] = []
        self.failures: dict[str, list[Exception]] = defaultdict(list)
        self.faults: dict[str, list[Exception | None]] = defaultdict(list)
        self.missing: set[str] = set()
        self.open_polls = 0
        self._count = 0

    def put(self, queue: str, *bodies: str, **fields) -> None:
        for body in bodies:
            self._count += 1
            self.stored[queue].append(_Stored(self._count, Outgoing(body, **fields), anyio.current_time()))

    def bodies(self, queue: str) -> list[str]:
        return [stored.outgoing.body for stored in self.stored[queue]]

    def visible(self, queue: str) -> list[str]:
        return [s.outgoing.body for s in self.stored[queue] if s.visible_at <= anyio.current_time()]

    def called(self, operation: str) -> list[list]:
        return [entries for name, _, entries in self.calls if name == operation]

    def url_of(self, arn: str) -> str:
        return arn

    async def receive(self, queue, *, max_messages=10, wait_seconds=20, visibility_seconds=None):
        self._begin("receive", [queue])
        if queue in self.missing:
            raise NotFound("no such queue")
        deadline = anyio.current_time() + wait_seconds
        self.open_polls += 1
        try:
            while True:
                now = anyio.current_time()
                ready = [stored for stored in self.stored[queue] if stored.visible_at <= now][:max_messages]
                if ready or now >= deadline:
                    return [self._take(stored, now + (visibility_seconds or 30)) for stored in ready]
                await anyio.sleep(min(0.05, deadline - now))
        finally:
            self.open_polls -= 1

    def _take(self, stored: _Stored, visible_at: float) -> Received:
        stored.receives += 1
        stored.visible_at = visible_at
        stored.receipt = f"{stored.id}#{stored.receives}"
        return Received(
            id=stored.id,
            receipt=stored.receipt,
            body=stored.outgoing.body,
            receive_count=stored.receives,
            sent_at=EPOCH + stored.sent_at,
            group=stored.outgoing.group,
            attributes=stored.outgoing.attributes,
        )

    async def send(self, queue, messages):
        self._begin("send", list(messages))
        await anyio.sleep(0.001)
        faults = self._answers("send", messages)
        for message, fault in zip(messages, faults, strict=True):
            if fault is None:
                self._count += 1
                self.stored[queue].append(_Stored(self._count, message, anyio.current_time()))
        return faults

    async def delete(self, queue, receipts):
        self._begin("delete", list(receipts))
        await anyio.sleep(0.001)
        faults = self._answers("delete", receipts)
        gone = {receipt for receipt, fault in zip(receipts, faults, strict=True) if fault is None}
        self.stored[queue] = [stored for stored in self.stored[queue] if stored.receipt not in gone]
        return faults

    async def set_visibility(self, queue, timeouts):
        self._begin("set_visibility", list(timeouts))
        await anyio.sleep(0.001)
        faults = self._answers("set_visibility", timeouts)
        now = anyio.current_time()
        held = {stored.receipt: stored for stored in self.stored[queue] if stored.visible_at > now}
        for position, (receipt, seconds) in enumerate(timeouts):
            if receipt not in held:
                faults[position] = faults[position] or Permanent(
                    "receipt is spent", code="ReceiptHandleIsInvalid"
                )
            elif faults[position] is None:
                held[receipt].visible_at = now + seconds
        return faults

    def _begin(self, operation: str, entries: list) -> None:
        assert len(entries) <= 10, "more than a batch"
        self.calls.append((operation, anyio.current_time(), entries))
        if self.failures[operation]:
            raise self.failures[operation].pop(0)

    def _answers(self, operation: str, entries) -> list:
        return [self.faults[operation].pop(0) if self.faults[operation] else None for _ in entries]


@pytest.fixture
def queues() -> FakeQueues:
    return FakeQueues()


@pytest.fixture
def lines() -> list[dict]:
    return []


@pytest.fixture
def log(lines):
    return recording_log(lines)


@pytest.fixture
def telemetry() -> RecordingTelemetry:
    return RecordingTelemetry()
