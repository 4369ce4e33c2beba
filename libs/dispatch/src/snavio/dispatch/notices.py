"""Events that belong to no message in hand: a ban opened, a revocation found. Kept until they are recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.wire.events import Event

_AT_ONCE = 100


class Notices:
    """Events waiting to be recorded; bounded, and whoever is given is told how many did not fit."""

    def __init__(self, outbox: OutboxWriter, *, on_lost: Callable[[int], None], most: int = 100_000) -> None:
        self._outbox = outbox
        self._on_lost = on_lost
        self._most = most
        self._waiting: deque[Event] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, events: list[Event]) -> None:
        """Record these as soon as possible."""
        room = self._most - len(self._waiting)
        self._waiting.extend(events[:room])
        if len(events) > room:
            self._on_lost(len(events) - room)

    async def flush(self) -> None:
        """Record what is waiting; what cannot be recorded now goes on waiting. Raises what the outbox raised."""
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            try:
                await self._outbox.write(taken)
            except BaseException:  # cancelled in the middle of it, too
                self._waiting.extendleft(reversed(taken))
                raise
