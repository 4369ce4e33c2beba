"""The whole registry in memory, for questions no single partition answers; current as of the moment it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from snavio.aws.errors import SnavioError
from snavio.control.problems import Unavailable
from snavio.registry.keeper import Keeper
from snavio.registry.view import Registry


class Catalogue:
    """Loads on first use, then reads only what changed."""

    def __init__(self, keeper: Keeper, *, clock: Callable[[], float]) -> None:
        self._keeper = keeper
        self._clock = clock

    async def current(self) -> Registry:
        """The registry with every change made before this call. Raises `Unavailable`."""
        if not await self._keeper.refresh_since(self._clock()):
            raise Unavailable("registry-unavailable", "The registry cannot be read at the moment.")
        return self._keeper.registry


class Unobserved:
    """Nobody is told how the catalogue is doing: a failure reaches the caller instead."""

    def loaded(self, *, entries: int, malformed: int, seconds: float, from_snapshot: bool) -> None:
        """The registry was loaded whole."""

    def refreshed(self, *, changes: int, age_before: float, seconds: float) -> None:
        """The registry was brought up to date."""

    def refresh_failed(self, error: SnavioError) -> None:
        """It could not be."""
