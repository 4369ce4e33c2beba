"""The messages a consumer has received and not yet settled."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from snavio.aws.ports import MAX_BATCH
from snavio.aws.values import Received
from snavio.runtime.bell import Bell
from snavio.runtime.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Held(msgspec.Struct, eq=False):
    """One message in hand."""

    message: Received
    received_at: float
    visible_at: float
    """When the queue would show it to others again, by the event loop's clock."""
    handed_at: float | None = None
    """When a handler was given it."""
    outcome: Outcome | None = None
    deletable: bool = False
    """Its effects are durable: done, or in the dead-letter queue."""
    lost: bool = False
    """The queue no longer honours the receipt: somebody else may hold the message."""


class InHand:
    """Bounded by `capacity`; polls reserve room before they receive, so that it is never exceeded.

    A message stays in hand until the queue has confirmed what became of it, so its visibility is renewed and its room
    is taken until then.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.room = Bell()
        """Rings when another poll may start."""
        self.work = Bell()
        """Rings when there is a batch for a handler."""
        self._reserved = 0
        self._held: dict[str, Held] = {}
        self._waiting: deque[Held] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held.values())

    @property
    def waiting(self) -> int:
        """Messages no handler has taken yet."""
        return len(self._waiting)

    def reserve(self) -> bool:
        """Make room for one more batch, if there is any."""
        if not self._has_room():
            return False
        self._reserved += MAX_BATCH
        if self._has_room():
            self.room.ring_one()
        return True

    def fill(self, messages: Sequence[Received], *, now: float, visible_at: float) -> None:
        """Hold what a poll received, if anything, in the room it had reserved; the rest of that is given back."""
        self._reserved -= MAX_BATCH
        for message in messages:
            held = Held(message, now, visible_at)
            self._held[message.receipt] = held
            self._waiting.append(held)
        if self._has_room():
            self.room.ring_one()
        if messages:
            self.work.ring_one()

    def next_batch(self, *, alone_from: int, most: int = MAX_BATCH) -> list[Held]:
        """Up to `most` waiting messages, oldest first; one that has been received `alone_from` times comes alone.

        Whatever makes a handler raise then cannot take its neighbours to the dead-letter queue with it.
        """
        batch: list[Held] = []
        while self._waiting and len(batch) < most:
            held = self._waiting[0]
            suspect = held.message.receive_count >= alone_from
            if suspect and batch:
                break
            self._waiting.popleft()
            if held.lost:
                self.let_go(held)
                continue
            batch.append(held)
            if suspect:
                break
        if self._waiting:
            self.work.ring_one()
        return batch

    def let_go(self, *batch: Held) -> None:
        """The queue knows what became of them."""
        for held in batch:
            self._held.pop(held.message.receipt, None)
        if self._has_room():
            self.room.ring_one()

    def holds(self, held: Held) -> bool:
        """Whether it is still in hand."""
        return held.message.receipt in self._held

    def oldest(self) -> float | None:
        """When the message longest in hand was received."""
        return next((held.received_at for held in self), None)

    def longest_handled(self) -> float | None:
        """When the handler longest at work was given its messages."""
        given = [held.handed_at for held in self if held.handed_at is not None and held.outcome is None]
        return min(given, default=None)

    def _has_room(self) -> bool:
        return len(self._held) + self._reserved + MAX_BATCH <= self.capacity
