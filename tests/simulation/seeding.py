"""One run on a loop of its own, everything that is chance decided by the seed: the same seed, the same run, to the byte."""

from __future__ import annotations

import asyncio
import gc
import os
import random
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from anyio._backends import _asyncio as anyio_backend
from anyio._core import _eventloop as anyio_loops
from simulation import virtual_loop
from simulation.virtual_loop import SimulatedLoop

from snavio.aws.memory import objects, queues, tables, vault
from snavio.registry import keeper
from snavio.runtime import lifecycle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator


def run(seed: int, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a simulation to its end.

    Not by `asyncio.run`: it minds Ctrl-C, and in doing so writes out the task and with it all the run has returned.
    """
    with closing(SimulatedLoop()) as loop, ExitStack() as stack:
        virtual_loop.use(loop)
        for context in (_seeded(seed), _left_out(), _quickened(loop), _uncollected()):
            stack.enter_context(context)
        result = loop.run_until_complete(main)
        loop.run_until_complete(loop.shutdown_asyncgens())
        return result


class _Ordered(dict[Any, None]):
    """A set that is gone through in the order of adding."""

    add = dict[Any, None].setdefault
    remove = dict[Any, None].pop

    def discard(self, member: Any) -> None:
        self.pop(member, None)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let everything that is chance come from the seed.

    The ids of claims and reservations and the pauses of a few retries are drawn from the operating system and from the
    `random` module; both are seeded here. anyio keeps tasks and scopes in sets, whose order is that of memory
    addresses: here it is that of their making.
    """
    chance = random.Random(f"{seed}/system")
    before = random.getstate()
    random.seed(f"{seed}/random")
    with _replaced((os, "urandom", chance.randbytes), (anyio_backend, "set", _Ordered)):
        try:
            yield
        finally:
            random.setstate(before)


def _left_out() -> Any:
    """What a process does to its machine: the health port, and the garbage collector told to forget what was loaded."""
    return _replaced((lifecycle, "serve_health", _no_health), (keeper, "gc", _NO_COLLECTOR))


def _quickened(loop: SimulatedLoop) -> Any:
    """What is asked many thousand times a run and has one answer here is answered at once.

    Which library and which task runs, how to wait, and what is known of a task, which needs no weak references where
    all ends with the run. A scope that is cancelled writes down by whom: the name will do.
    """
    return _replaced(
        (anyio_loops, "current_async_library", lambda: "asyncio"),
        (anyio_backend, "current_task", partial(asyncio.tasks._current_tasks.get, loop)),
        (anyio_backend, "sleep", virtual_loop.sleep),
        (anyio_backend.AsyncIOBackend, "current_time", classmethod(lambda _: loop.now)),
        (anyio_backend, "_task_states", {}),
        (asyncio.base_tasks, "_task_repr_info", lambda task: [task.get_name()]),
        *((port, "checkpoint", virtual_loop.turn) for port in (objects, queues, tables, vault)),
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage is looked for in the middle of a run: there is hardly any, and when it is found depends on the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _replaced(*replacements: tuple[Any, str, Any]) -> Iterator[None]:
    """As `mock.patch.object`, which takes longer than all of them together should."""
    before = [(place, name, vars(place).get(name, _NOTHING)) for place, name, _ in replacements]
    for place, name, stand_in in replacements:
        setattr(place, name, stand_in)
    try:
        yield
    finally:
        for place, name, was in before:
            if was is _NOTHING:
                delattr(place, name)
            else:
                setattr(place, name, was)


_NOTHING = object()
_NO_COLLECTOR = mock.Mock()


@asynccontextmanager
async def _no_health(_worker: Any) -> AsyncIterator[None]:
    yield
