"""Tasks beside the queues: named, watched, and never allowed to stop quietly."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import anyio
import msgspec

from snavio.runtime import metrics
from snavio.runtime.backoff import jittered
from snavio.runtime.errors import TaskFailed
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry

Work: TypeAlias = Callable[[], Awaitable[None]]


class TaskStatus(msgspec.Struct, frozen=True):
    """What a background task is doing."""

    name: str
    runs: int
    tolerated: int
    last_run_seconds_ago: float | None
    last_run_took_seconds: float | None


class Forever:
    """Work that runs until the worker stops. Returning earlier is a failure."""

    def __init__(self, name: str, work: Work) -> None:
        self.name = name
        self._work = work

    async def run(self) -> None:
        """Run; raises `TaskFailed` whichever way the work ends."""
        try:
            await self._work()
        except Exception as error:
            raise TaskFailed(self.name, f"raised {type(error).__name__}: {error}") from error
        raise TaskFailed(self.name, "returned though it should run until the worker stops")

    def status(self) -> TaskStatus:
        """What it is doing."""
        return TaskStatus(self.name, 1, 0, None, None)


class Periodic:
    """Work repeated every `seconds`, moved by up to the fraction `jitter` either way, from one end to the next start.

    Errors of the `tolerate`d classes are logged, counted and followed by the next run; any other ends the worker.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        work: Work,
        *,
        log: Log,
        jitter: float = 0.1,
        tolerate: tuple[type[Exception], ...] = (),
        at_once: bool = False,
        telemetry: Telemetry = SILENT,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._seconds = seconds
        self._work = work
        self._jitter = jitter
        self._tolerate = tolerate
        self._at_once = at_once
        self._log = log
        self._telemetry = telemetry
        self._roll = roll
        self._runs = 0
        self._tolerated = 0
        self._last_start: float | None = None
        self._last_took: float | None = None

    async def run(self) -> None:
        """Repeat until cancelled; raises `TaskFailed` when the work raises what is not tolerated."""
        if not self._at_once:
            await self._pause()
        while True:
            await self._once()
            await self._pause()

    def status(self) -> TaskStatus:
        """What it is doing."""
        ago = None if self._last_start is None else round(anyio.current_time() - self._last_start, 3)
        return TaskStatus(self.name, self._runs, self._tolerated, ago, self._last_took)

    async def _pause(self) -> None:
        await anyio.sleep(jittered(self._seconds, self._roll(), self._jitter))

    async def _once(self) -> None:
        started = self._last_start = anyio.current_time()
        try:
            await self._work()
        except self._tolerate as error:
            self._tolerated += 1
            self._log.warning(LogEvent.TASK_TOLERATED, error=error, task=self.name)
            self._telemetry.measure(metrics.TASK_FAULTS, 1, task=self.name)
        except Exception as error:
            raise TaskFailed(self.name, f"raised {type(error).__name__}: {error}") from error
        self._runs += 1
        self._last_took = round(anyio.current_time() - started, 3)
