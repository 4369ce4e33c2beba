"""Wakes whoever waits for something to change."""

from __future__ import annotations

from collections import deque

import anyio


class Bell:
    """A condition without a lock, for tasks of one event loop.

    Waiters check what they wait for, then `await bell.wait()`, then check again; nothing can change between a check
    and the wait since neither yields.
    """

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: deque[anyio.Event] = deque()

    def ring(self) -> None:
        """Wake everyone now waiting."""
        while self._waiters:
            self.ring_one()

    def ring_one(self) -> None:
        """Wake the one who has waited longest, if anyone waits."""
        if self._waiters:
            self._waiters.popleft().set()

    async def wait(self) -> None:
        """Return when rung."""
        rung = anyio.Event()
        self._waiters.append(rung)
        try:
            await rung.wait()
        except BaseException:
            if rung.is_set():  # rung and cancelled at once: the ring was meant for somebody who can still act
                self.ring_one()
            else:
                self._waiters.remove(rung)
            raise
