"""A queue in memory with what matters of SQS: visibility, receive counts, receipts that go stale, dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import msgspec

from snavio.sdk.inbox import Message, Redrive

_IN_MEMORY = "memory:dlq"


class DeadLetter(msgspec.Struct, frozen=True):
    """What was given up, and why."""

    body: str
    reason: str


class _Stored:
    __slots__ = ("body", "id", "receipt", "receives", "visible_at")

    def __init__(self, message_id: str, body: str) -> None:
        self.id = message_id
        self.body = body
        self.receipt = ""
        self.receives = 0
        self.visible_at = 0.0


class MemoryInbox:
    """A queue for one reader or several, on the clock of the event loop."""

    def __init__(self, *, max_receives: int = 3) -> None:
        self.dead: list[DeadLetter] = []
        self._max_receives = max_receives
        self._stored: dict[str, _Stored] = {}
        self._numbers = count(1)
        self._changed = asyncio.Event()
        self._closing = False

    def __len__(self) -> int:
        return len(self._stored)

    def send(self, body: str) -> None:
        """Put a message in."""
        message_id = f"message-{next(self._numbers)}"
        self._stored[message_id] = _Stored(message_id, body)
        self._ring()

    async def empty(self) -> None:
        """Wait until every message was deleted."""
        while self._stored:
            await self._changed.wait()

    def let_polls_end(self, *, closing: bool = True) -> None:
        """Make waiting polls, and later ones, return at once."""
        self._closing = closing
        self._ring()

    async def redrive(self) -> Redrive:
        """Dead letters are kept in `dead`."""
        return Redrive(_IN_MEMORY, self._max_receives)

    async def receive(
        self, *, max_messages: int, wait_seconds: int, visibility_seconds: int
    ) -> list[Message]:
        """What is visible, or what becomes so within the wait."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_seconds
        while True:
            now = loop.time()
            visible = [stored for stored in self._stored.values() if stored.visible_at <= now]
            if visible or self._closing or now >= deadline:
                return [self._taken(stored, now + visibility_seconds) for stored in visible[:max_messages]]
            soonest = min((stored.visible_at for stored in self._stored.values()), default=deadline)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(soonest, deadline)):
                    await self._changed.wait()

    async def delete(self, receipts: Sequence[str]) -> list[str]:
        """Delete by receipt; a stale one fails."""
        failed: list[str] = []
        for receipt in receipts:
            stored = self._held(receipt)
            if stored is None:
                failed.append(receipt)
            else:
                del self._stored[stored.id]
        self._ring()
        return failed

    async def hold(self, receipts: Sequence[str], seconds: int) -> list[str]:
        """Change visibility by receipt; a stale one fails."""
        failed: list[str] = []
        for receipt in receipts:
            stored = self._held(receipt)
            if stored is None:
                failed.append(receipt)
            else:
                stored.visible_at = asyncio.get_running_loop().time() + seconds
        self._ring()
        return failed

    async def bury(self, message: Message, dlq_url: str, reason: str) -> None:
        """Keep a dead letter."""
        del dlq_url
        self.dead.append(DeadLetter(message.body, reason))

    def _taken(self, stored: _Stored, visible_at: float) -> Message:
        stored.receives += 1
        stored.receipt = f"{stored.id}#{stored.receives}"
        stored.visible_at = visible_at
        return Message(stored.id, stored.receipt, stored.body, stored.receives)

    def _held(self, receipt: str) -> _Stored | None:
        stored = self._stored.get(receipt.partition("#")[0])
        return stored if stored is not None and stored.receipt == receipt else None

    def _ring(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
