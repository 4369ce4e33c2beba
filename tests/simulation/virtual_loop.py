"""An event loop on which time is a number."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import types
from collections import deque
from typing import TYPE_CHECKING, Any

from snavio.runtime.testing import EPOCH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator


MOST_TURNS = 100_000
"""How often the loop may go round in one run: some ten times what any of two thousand seeds needs."""


class _Call:
    """A callback that is due, now or later, unless it is cancelled."""

    __slots__ = ("args", "callback", "context")

    def __init__(
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> None:
        self.callback: Callable[..., Any] | None = callback
        self.args = args
        # Not `or`: an empty context is false.
        self.context = contextvars.copy_context() if context is None else context

    def cancel(self) -> None:
        self.callback = None


class SimulatedLoop(asyncio.BaseEventLoop):
    """Sleeping takes no time, and there is no world outside: when no task can run, time jumps to the next timer.

    A run is little but turns of this loop, so it does less than the one it stands in for: nothing is asked of the
    operating system, no other thread can wake it, and a callback that raises ends the run instead of being logged.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.turns = 0
        self._due: deque[_Call] = deque()
        self._timers: list[tuple[float, int, _Call | asyncio.Future[None]]] = []
        self._timers_set = 0

    def time(self) -> float:
        """Seconds since the beginning."""
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        call = _Call(callback, args, context)
        self._due.append(call)
        return call

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        call = _Call(callback, args, context)
        if when <= self.now:
            self._due.append(call)
        else:
            # Timers of the same moment go off in the order in which they were set.
            self._timers_set += 1
            heapq.heappush(self._timers, (when, self._timers_set, call))
        return call

    def pause(self, seconds: float) -> asyncio.Future[None]:
        """What is done after so long."""
        future = self.create_future()
        self._timers_set += 1
        heapq.heappush(self._timers, (self.now + seconds, self._timers_set, future))
        return future

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def _run_once(self) -> None:
        due = self._due
        while not self._stopping:
            self.turns += 1
            if self.turns > MOST_TURNS:
                raise RuntimeError(
                    f"the loop went round {MOST_TURNS} times and {self.now:.0f} s passed without an end to the run"
                )
            if not due:
                self._jump()
            for _ in range(len(due)):
                call = due.popleft()
                if call.callback is not None:
                    call.context.run(call.callback, *call.args)

    def _jump(self) -> None:
        """On to the next moment at which something happens."""
        timers, due = self._timers, self._due
        while timers and (not due or timers[0][0] == self.now):
            when, _, waits = heapq.heappop(timers)
            if isinstance(waits, _Call):
                if waits.callback is not None:
                    self.now = when
                    due.append(waits)
            elif not waits.done():
                self.now = when
                waits.set_result(None)
        if not due:
            raise RuntimeError("every task waits and no timer is set: nothing would ever happen")


def true_time() -> float:
    """The time of day, as no worker can know it."""
    return EPOCH + _loop.now


def elapsed() -> float:
    """Seconds since the run began."""
    return _loop.now


def sleep(seconds: float) -> Awaitable[None]:
    """`asyncio.sleep` with one turn of the loop less."""
    return _loop.pause(seconds) if seconds > 0 else turn()


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Let the others run."""
    yield


def use(loop: SimulatedLoop) -> None:
    """Let the time be this loop's."""
    global _loop  # noqa: PLW0603 - as asyncio's own
    _loop = loop


_loop: SimulatedLoop
"""The one that runs. asyncio is not asked for it: its answer costs a system call, and the time is asked for everywhere."""
