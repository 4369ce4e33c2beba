"""Gathers entries from many callers into full batches."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from snavio.runtime.bell import Bell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")


class Coalescer(Generic[T]):
    """Passes entries on in batches of `size`; fewer once the oldest has waited `linger` seconds.

    When busy the batches are full, when idle an entry waits no longer than the linger. At most `lanes` batches are
    acted on at a time; what comes meanwhile gathers. An `act` that raises ends `run`.
    """

    def __init__(
        self,
        act: Callable[[list[T]], Awaitable[None]],
        *,
        size: int = 10,
        linger: float = 0.02,
        lanes: int = 4,
    ) -> None:
        self._act = act
        self._size = size
        self._linger = linger
        self._lanes = lanes
        self._pending: deque[T] = deque()
        self._active = 0
        self._flushing = 0
        self._overdue = False
        self._timer: asyncio.TimerHandle | None = None
        self._work = Bell()
        self._settled = Bell()

    def add(self, entries: Iterable[T]) -> None:
        """Take entries in; returns at once."""
        self._pending.extend(entries)
        self._wake()

    async def run(self) -> None:
        """Act on what is added, until cancelled."""
        try:
            async with anyio.create_task_group() as group:
                for _ in range(self._lanes):
                    group.start_soon(self._lane)
        finally:
            if self._timer:
                self._timer.cancel()

    async def flush(self) -> None:
        """Return once everything added so far has been acted on; nothing lingers meanwhile."""
        self._flushing += 1
        self._work.ring()
        try:
            while self._pending or self._active:
                await self._settled.wait()
        finally:
            self._flushing -= 1

    async def _lane(self) -> None:
        while True:
            while not self._ripe():
                await self._work.wait()
            batch = [self._pending.popleft() for _ in range(min(self._size, len(self._pending)))]
            self._overdue = False
            self._active += 1
            self._wake()
            try:
                await self._act(batch)
            finally:
                self._active -= 1
                self._settled.ring()

    def _ripe(self) -> bool:
        return len(self._pending) >= self._size or bool(self._pending and (self._overdue or self._flushing))

    def _wake(self) -> None:
        """Start a lane if there is a batch for it, or see that there will be one in time."""
        if self._ripe():
            self._work.ring_one()
        elif self._pending and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._linger, self._expire)

    def _expire(self) -> None:
        # Entries added after the timer was set are taken along early, which does no harm.
        self._timer = None
        self._overdue = bool(self._pending)
        self._wake()
