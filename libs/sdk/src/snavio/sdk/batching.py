"""Packing commands into requests, and what to do with each after a request was answered."""

from __future__ import annotations

from collections import deque
from typing import Protocol, TypeAlias, TypeVar

import msgspec

MAX_ENTRIES = 10
"""What one PutEvents request may carry."""


class Sized(Protocol):
    """Something that takes room in a request."""

    @property
    def size(self) -> int:
        """In bytes."""
        ...


S = TypeVar("S", bound=Sized)


def take_batch(waiting: deque[S], *, max_bytes: int, max_entries: int = MAX_ENTRIES) -> list[S]:
    """Take from the front what fits in one request; at least one, so that nothing can block the way."""
    batch: list[S] = []
    room = max_bytes
    while waiting and len(batch) < max_entries and (waiting[0].size <= room or not batch):
        room -= waiting[0].size
        batch.append(waiting.popleft())
    return batch


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The bus has it."""

    event_id: str


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The bus does not have it, or did not say so."""

    code: str
    detail: str
    permanent: bool = False
    uncertain: bool = False
    """The request was sent and never answered."""


PutResult: TypeAlias = Accepted | Failed

_TRANSIENT = (
    "Throttl",
    "Internal",
    "ServiceUnavailable",
    "TooManyRequests",
    "LimitExceeded",
    "RequestTimeout",
)


def entry_failed(code: str, detail: str) -> Failed:
    """What the code of a failed entry means. Only what the bus may yet accept is tried again."""
    return Failed(code, detail, permanent=not any(sign in code for sign in _TRANSIENT))


def backoff_seconds(attempt: int, roll: float, *, shortest: float = 0.05, longest: float = 5.0) -> float:
    """How long to wait after the nth failed attempt: doubling, with the upper half left to chance (`roll` in 0..1)."""
    full = min(longest, shortest * 2 ** min(attempt - 1, 30))
    return full * (0.5 + 0.5 * roll)
