"""Remembering what was handled, so that a repeat is not handled again.

A command is claimed before its handler runs and finished after it. A claim whose holder died is taken over, and the
handler is told that it may have run before.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec


class Claimed(msgspec.Struct, frozen=True, tag=True):
    """Handle it. `repeated` says that someone began before and did not finish."""

    repeated: bool = False


class Finished(msgspec.Struct, frozen=True, tag=True):
    """Handled before: nothing to do."""


class Busy(msgspec.Struct, frozen=True, tag=True):
    """Someone is at it; how that ends will be known in so many seconds at the latest."""

    seconds: float


Claim: TypeAlias = Claimed | Finished | Busy


class IdempotencyStore(Protocol):
    """Who has a command. `owner` is the queue message; another with the same key is a repeat."""

    async def claim(self, key: str, owner: str, seconds: float) -> Claim:
        """Try to take it for so long. The same owner takes over its own claim: its message came back."""
        ...

    async def renew(self, key: str, owner: str, seconds: float) -> None:
        """Keep a claim for so long from now."""
        ...

    async def finish(self, key: str, owner: str) -> None:
        """It was handled."""
        ...

    async def release(self, key: str, owner: str) -> None:
        """It was not handled, and nobody is at it."""
        ...


class _Record(msgspec.Struct):
    owner: str
    until: float
    finished: bool
    forget_at: float


class MemoryStore:
    """Remembers within one process: for tests, and for targets with a single worker that may forget at a restart."""

    def __init__(
        self,
        *,
        remember_seconds: float = 24 * 3600.0,
        most: int = 100_000,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._remember = remember_seconds
        self._most = most
        self._now = now
        self._records: OrderedDict[str, _Record] = OrderedDict()

    async def claim(self, key: str, owner: str, seconds: float) -> Claim:
        """Try to take it."""
        now = self._now()
        found = self._records.get(key)
        if found is not None and now < found.forget_at:
            if found.finished:
                return Finished()
            if found.owner != owner and now < found.until:
                return Busy(found.until - now)
        else:
            found = None
        self._records[key] = _Record(owner, now + seconds, finished=False, forget_at=now + self._remember)
        self._records.move_to_end(key)
        while len(self._records) > self._most:
            self._records.popitem(last=False)
        return Claimed(repeated=found is not None)

    async def renew(self, key: str, owner: str, seconds: float) -> None:
        """Keep a claim."""
        if (found := self._mine(key, owner)) is not None:
            found.until = self._now() + seconds

    async def finish(self, key: str, owner: str) -> None:
        """It was handled."""
        if (found := self._mine(key, owner)) is not None:
            found.finished = True
            found.forget_at = self._now() + self._remember

    async def release(self, key: str, owner: str) -> None:
        """It was not handled."""
        if self._mine(key, owner) is not None:
            del self._records[key]

    def _mine(self, key: str, owner: str) -> _Record | None:
        found = self._records.get(key)
        return found if found is not None and found.owner == owner and not found.finished else None
