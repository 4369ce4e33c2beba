"""Runs a worker from its wiring to its exit code."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, cast

import anyio

from snavio.runtime.errors import TaskFailed
from snavio.runtime.health import serve_health
from snavio.runtime.log_events import LogEvent
from snavio.runtime.signals import os_signals
from snavio.runtime.worker import Worker

if TYPE_CHECKING:
    from snavio.runtime.signals import Signals
    from snavio.runtime.worker import Intake

CLEAN = 0
FAILED = 1
ABORTED = 130
"""As a shell reports a process that was interrupted."""

_OVERTIME_SECONDS = 5.0

Wire: TypeAlias = Callable[[Worker], Awaitable[None]]
"""Declares on a worker what it does."""


async def run(worker: Worker, wire: Wire, *, signals: Signals = os_signals) -> int:
    """Live, and return the exit code."""
    life = _Life(worker)
    try:
        async with anyio.create_task_group() as everything:
            with signals() as stream:
                everything.start_soon(life.watch, stream, everything.cancel_scope)
                async with serve_health(worker):
                    await life.live(wire)
                everything.cancel_scope.cancel()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported and ends the process
        life.report(error)
    worker.log.info(LogEvent.WORKER_STOPPED, exit_code=life.exit_code)
    return life.exit_code


class _Life:
    def __init__(self, worker: Worker) -> None:
        self.exit_code = CLEAN
        self._worker = worker
        self._log = worker.log
        self._asked_to_stop = anyio.Event()

    async def watch(self, stream: AsyncIterator[int], everything: anyio.CancelScope) -> None:
        """Drain at the first signal, abort at the second; before there is anything to drain, just end."""
        async for number in stream:
            name = signal.Signals(number).name
            if self._asked_to_stop.is_set():
                self._log.warning(LogEvent.WORKER_ABORTED, signal=name)
                self.exit_code = ABORTED
                everything.cancel()
                return
            self._log.info(LogEvent.WORKER_DRAINING, signal=name)
            self._worker.draining = True
            self._asked_to_stop.set()
            if not self._worker.wired:
                everything.cancel()
                return

    async def live(self, wire: Wire) -> None:
        """Wire, work until drained, flush. Also after a failure what can be flushed is."""
        worker = self._worker
        async with worker.stack:
            await wire(worker)
            worker.wired = True
            self._log.info(
                LogEvent.WORKER_STARTED,
                intakes=[intake.name for intake in worker.intakes],
                tasks=[task.name for task in worker.tasks],
            )
            try:
                await self._work()
            finally:
                if self.exit_code != ABORTED:
                    with anyio.CancelScope(shield=True):
                        await self._flush()

    def report(self, error: Exception) -> None:
        """Say why the worker failed, each reason once."""
        if self.exit_code != ABORTED:
            self.exit_code = FAILED
        for leaf in _leaves(error):
            task = leaf.task if isinstance(leaf, TaskFailed) else None
            self._log.error(LogEvent.WORKER_FAILED, error=leaf, task=task)

    async def _work(self) -> None:
        async with anyio.create_task_group() as background:
            for task in self._worker.tasks:
                background.start_soon(task.run, name=task.name)
            if await self._prepare():
                await self._take_in()
            background.cancel_scope.cancel()

    async def _prepare(self) -> bool:
        """Do what comes before everything else; False when asked to stop meanwhile."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._give_up_when_asked, group.cancel_scope)
            for work in self._worker.firsts:
                await work()
            group.cancel_scope.cancel()
        return not self._asked_to_stop.is_set()

    async def _give_up_when_asked(self, scope: anyio.CancelScope) -> None:
        await self._asked_to_stop.wait()
        scope.cancel()

    async def _take_in(self) -> None:
        seconds = self._worker.config.drain_seconds
        async with anyio.create_task_group() as intakes:
            for intake in self._worker.intakes:
                intakes.start_soon(self._run_intake, intake, name=intake.name)
            await self._asked_to_stop.wait()
            for intake in self._worker.intakes:
                intake.drain(seconds)
            intakes.cancel_scope.deadline = anyio.current_time() + seconds + _OVERTIME_SECONDS
        if intakes.cancel_scope.cancelled_caught:
            raise TaskFailed("drain", f"was not over {_OVERTIME_SECONDS:g} s after its {seconds:g} s")
        self._log.info(LogEvent.WORKER_DRAINED)

    async def _run_intake(self, intake: Intake) -> None:
        try:
            await intake.run()
        except Exception as error:
            raise TaskFailed(intake.name, f"raised {_described(error)}") from error
        if not self._worker.draining:
            raise TaskFailed(intake.name, "returned though it should run until drained")

    async def _flush(self) -> None:
        hooks = self._worker.flushes
        deadline = anyio.current_time() + self._worker.config.flush_seconds
        for position, (name, work) in enumerate(hooks):
            # An even share of what is left, so that one that hangs leaves time for the next.
            share = (deadline - anyio.current_time()) / (len(hooks) - position)
            with anyio.move_on_after(share) as scope:
                try:
                    await work()
                except Exception as error:  # noqa: BLE001 - the other hooks still have theirs to save
                    self._flush_failed(name, error)
            if scope.cancelled_caught:
                self._flush_failed(name, TimeoutError("no time left"))

    def _flush_failed(self, name: str, error: Exception) -> None:
        self.exit_code = FAILED
        self._log.error(LogEvent.FLUSH_FAILED, error=error, task=name)


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
    return [error]


def _described(error: BaseException) -> str:
    return "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in _leaves(error))
