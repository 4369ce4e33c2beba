"""Deleting what is done, ten at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from snavio.sdk.inbox import MAX_BATCH, Inbox

_log = logging.getLogger("snavio.sdk")
_LINGER_SECONDS = 0.02
_TRIES = 3


class Deletions:
    """Gathers receipts and deletes them in batches; `on_end` hears of each that is dealt with."""

    def __init__(self, inbox: Inbox, on_end: Callable[[str], None]) -> None:
        self._inbox = inbox
        self._on_end = on_end
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, receipt: str) -> None:
        """Delete it soon."""
        self._waiting.append(receipt)
        if len(self._waiting) >= MAX_BATCH:
            self._start()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._start)

    async def flush(self) -> None:
        """Delete what waits and wait until all is deleted."""
        self._start()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        if batch:
            task = asyncio.create_task(self._delete(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _delete(self, batch: list[str]) -> None:
        left = batch
        for _ in range(_TRIES):
            try:
                left = await self._inbox.delete(left)
            except Exception as error:  # noqa: BLE001 - tried again, and in the end the message merely comes back
                _log.warning("Messages could not be deleted: %s", error)
            if not left:
                break
        for receipt in batch:
            self._on_end(receipt)
