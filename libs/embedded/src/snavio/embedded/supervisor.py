"""Keeps the services of the platform running, each in its own process, until told to stop."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Mapping, Sequence

import anyio
import msgspec

from snavio.embedded.console import Console
from snavio.embedded.errors import CannotStart
from snavio.embedded.health import until_ready
from snavio.embedded.processes import Child, start
from snavio.runtime.backoff import backoff_seconds
from snavio.runtime.main import MISCONFIGURED


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A service to run."""

    name: str
    module: str
    """Run as `python -m` would."""
    health_port: int
    stage: int = 0
    """Stages are stopped from the lowest up, the services of one stage together."""
    environment: Mapping[str, str]


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long the supervisor waits for what."""

    ready_seconds: float = 120.0
    stop_seconds: float = 30.0
    steady_seconds: float = 30.0
    """A process that ran for so long begins again with the shortest backoff."""
    backoff_seconds: float = 0.5
    max_backoff_seconds: float = 30.0


class Supervisor:
    """Runs services until it is cancelled."""

    def __init__(
        self, specs: Sequence[ServiceSpec], console: Console, *, hurry: asyncio.Event, patience: Patience
    ) -> None:
        self._specs = specs
        self._console = console
        self._hurry = hurry
        self._patience = patience
        self._running: dict[str, Child] = {}

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Start everything and say when all are ready. However it ends, all are stopped in order.

        When `hurry` is set the rest of the stop is a kill. Raises `CannotStart`, in a group, when a service refuses
        its settings or is not ready in time.
        """
        try:
            async with anyio.create_task_group() as group:
                for spec in self._specs:
                    group.start_soon(self._keep_running, spec)
                group.start_soon(self._announce, on_ready)
        finally:
            with anyio.CancelScope(shield=True):
                await self._stop_all()

    async def _keep_running(self, spec: ServiceSpec) -> None:
        failures = 0
        while True:
            began = anyio.current_time()
            command = (sys.executable, "-m", "snavio.embedded.child", spec.module)
            child = await start(spec.name, command, spec.environment, self._console)
            self._running[spec.name] = child
            code = await child.wait()
            del self._running[spec.name]
            if code == MISCONFIGURED:
                raise CannotStart(f"The service {spec.name} refuses its settings; it says above which.")
            failures = 1 if anyio.current_time() - began >= self._patience.steady_seconds else failures + 1
            delay = self._backoff(failures)
            self._console.say(f"{spec.name} {_ended(code)}; starting it again in {delay:.1f} s")
            await anyio.sleep(delay)

    def _backoff(self, failures: int) -> float:
        patience = self._patience
        return backoff_seconds(
            failures, random.random(), base=patience.backoff_seconds, cap=patience.max_backoff_seconds
        )

    async def _announce(self, on_ready: Callable[[], None]) -> None:
        waiting = {spec.name for spec in self._specs}

        async def wait_for(spec: ServiceSpec) -> None:
            await until_ready(spec.health_port)
            waiting.discard(spec.name)

        with anyio.move_on_after(self._patience.ready_seconds):
            async with anyio.create_task_group() as group:
                for spec in self._specs:
                    group.start_soon(wait_for, spec)
        if waiting:
            late = ", ".join(sorted(waiting))
            raise CannotStart(f"Not ready within {self._patience.ready_seconds:.0f} s: {late}.")
        on_ready()

    async def _stop_all(self) -> None:
        for stage in sorted({spec.stage for spec in self._specs}):
            names = [spec.name for spec in self._specs if spec.stage == stage and spec.name in self._running]
            if names:
                self._console.say(f"stopping {', '.join(names)}")
            async with anyio.create_task_group() as group:
                for name in names:
                    group.start_soon(self._stop_one, self._running[name])

    async def _stop_one(self, child: Child) -> None:
        await child.stop(grace_seconds=self._patience.stop_seconds, hurry=self._hurry)


def _ended(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
