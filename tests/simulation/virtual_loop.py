"""An event loop on which time is a number, and the chance a seed decides: the same seed, the same run, to the byte."""

from __future__ import annotations

import asyncio
import os
import random
import selectors
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from anyio._backends._asyncio import CancelScope

from snavio.registry import keeper
from snavio.runtime import lifecycle
from snavio.runtime.testing import EPOCH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator


class _Jumps(selectors.BaseSelector):
    """Asks nothing of the operating system: when no task can run, time jumps to the next timer."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self._files: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        # The loop's own pipe, through which only other threads could wake it; there are none.
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._files[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files.pop(fileobj)

    def get_map(self) -> dict[Any, selectors.SelectorKey]:
        return self._files

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits and no timer is set: nothing would ever happen")
        if timeout > 0:
            self.elapsed += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Sleeping takes no time, and there is no world outside."""

    def __init__(self) -> None:
        self._jumps = _Jumps()
        super().__init__(self._jumps)

    def time(self) -> float:
        """Seconds since the beginning."""
        return self._jumps.elapsed


def true_time() -> float:
    """The time of day, as no worker can know it."""
    return EPOCH + asyncio.get_running_loop().time()


class _Ordered(dict[Any, None]):
    """A set that is gone through in the order of adding."""

    def add(self, member: Any) -> None:
        self[member] = None

    def discard(self, member: Any) -> None:
        self.pop(member, None)

    def remove(self, member: Any) -> None:
        del self[member]


@contextmanager
def decided_by(seed: int) -> Iterator[None]:
    """Let everything that is chance come from the seed.

    The ids of claims and reservations and the pauses of a few retries are drawn from the operating system and from the
    `random` module; both are seeded here. anyio keeps tasks and scopes in sets, whose order is that of memory
    addresses: here it is that of their making. And what a process does to its machine is left out: the health port, and
    the garbage collector told to forget what was loaded.
    """
    chance = random.Random(f"{seed}/system")
    before = random.getstate()
    random.seed(f"{seed}/random")
    make = CancelScope.__init__

    def make_ordered(self: CancelScope, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self._child_scopes = _Ordered()
        self._tasks = _Ordered()

    with ExitStack() as patches:
        patches.callback(random.setstate, before)
        for place, name, stand_in in (
            (os, "urandom", chance.randbytes),
            (CancelScope, "__init__", make_ordered),
            (lifecycle, "serve_health", _no_health),
            (keeper, "gc", mock.Mock()),
        ):
            patches.enter_context(mock.patch.object(place, name, stand_in))
        yield


@asynccontextmanager
async def _no_health(_worker: Any) -> AsyncIterator[None]:
    yield


def run(seed: int, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a simulation to its end."""
    with decided_by(seed), asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
