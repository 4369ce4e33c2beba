"""Wakes whoever waits for something to change."""

from __future__ import annotations

import asyncio
from collections import deque


class Bell:
    """A condition without a lock, for tasks of one event loop.

    Waiters check what they wait for, then `await bell.wait()`, then check again; nothing can change between a check
    and the wait since neither yields. Plain futures: this is in the path of every batch.
    """

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    def ring(self) -> None:
        """Wake everyone now waiting."""
        for _ in range(len(self._waiters)):
            self.ring_one()

    def ring_one(self) -> None:
        """Wake the one who has waited longest, if anyone waits."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def wait(self) -> None:
        """Return when rung."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if (
                not waiter.cancelled()
            ):  # rung and cancelled at once: the ring was meant for one who can still act
                self.ring_one()
            raise
