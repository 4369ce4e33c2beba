"""A clock that moves only when told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ManualClock:
    """Call it for the time in seconds; `advance` moves it and tells whoever waits on it."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self._listeners: list[Callable[[], None]] = []

    def __call__(self) -> float:
        """The time now, in seconds."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let this much time pass at once."""
        self.now += seconds
        for listener in self._listeners:
            listener()

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Call the listener after every advance."""
        self._listeners.append(listener)
