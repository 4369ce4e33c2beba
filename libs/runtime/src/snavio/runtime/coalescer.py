"""Gathers entries from many callers into full batches."""

from __future__ import annotations

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
        self._added = Bell()
        self._finished = Bell()

    def add(self, entries: Iterable[T]) -> None:
        """Take entries in; returns at once."""
        self._pending.extend(entries)
        self._added.ring()

    async def run(self) -> None:
        """Act on what is added, until cancelled."""
        async with anyio.create_task_group() as lanes:
            while True:
                while not self._pending:
                    await self._added.wait()
                await self._gather()
                while self._active >= self._lanes:
                    await self._finished.wait()
                batch = [self._pending.popleft() for _ in range(min(self._size, len(self._pending)))]
                self._active += 1
                lanes.start_soon(self._lane, batch)

    async def flush(self) -> None:
        """Return once everything added so far has been acted on; nothing lingers meanwhile."""
        self._flushing += 1
        self._added.ring()
        try:
            while self._pending or self._active:
                await self._finished.wait()
        finally:
            self._flushing -= 1

    async def _gather(self) -> None:
        with anyio.move_on_after(self._linger):
            while len(self._pending) < self._size and not self._flushing:
                await self._added.wait()

    async def _lane(self, batch: list[T]) -> None:
        try:
            await self._act(batch)
        finally:
            self._active -= 1
            self._finished.ring()
