"""The life of a worker: wired, ready, draining, flushed, gone.

A service declares what it does on a `Worker` and never touches signals, task groups or exit codes:

    async def wire(config: ShieldConfig, worker: Worker) -> None:
        aws = await worker.enter(open_aws(config))
        keys = Keys(aws.tables)
        worker.ready("keys", keys.missing)
        worker.every(2.0, keys.refresh, name="refresh-keys", tolerate=(Transient,))
        worker.consume(queues=aws.queues, queue=..., dlq=..., handler=Shield(keys).handle)
        worker.on_flush("stats", stats.flush)

A first signal drains: intakes stop and finish under the deadline, then background tasks end, then the flush hooks run
in order, and the exit code is 0. A second signal, or any failure, ends everything at once and the code is not 0.
"""

from __future__ import annotations

import random
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio

from snavio.runtime import messaging
from snavio.runtime.background import Forever, Periodic
from snavio.runtime.consumer import Consumer, ConsumerSettings
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from snavio.aws.ports import Queues
    from snavio.runtime.background import Work
    from snavio.runtime.common_config import CommonConfig
    from snavio.runtime.logs import Log
    from snavio.runtime.messaging import ContextOf
    from snavio.runtime.outcome import Handler
    from snavio.runtime.telemetry import Telemetry

T = TypeVar("T")


class Intake(Protocol):
    """Something that takes work in until it is drained: a `Consumer`, or a service's own reader of a stream."""

    name: str

    async def run(self) -> None:
        """Work until drained, then return; returning undrained is a failure."""
        ...

    def drain(self, seconds: float) -> None:
        """Take nothing more in; finish, or hand back, within so many seconds."""
        ...

    def status(self) -> object:
        """What it is doing, as something msgspec can write."""
        ...

    def ailment(self) -> str | None:
        """Why the process should be restarted, if it should."""
        ...


class Worker:
    """What one process does. Made inside the event loop; everything is declared before `wire` returns."""

    def __init__(
        self,
        service: str,
        config: CommonConfig,
        *,
        worker_id: str,
        log: Log,
        telemetry: Telemetry = SILENT,
        now: Callable[[], float] = time.time,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self.service = service
        self.config = config
        self.worker_id = worker_id
        self.log = log
        self.telemetry = telemetry
        self.now = now
        self.roll = roll
        self.started_at = anyio.current_time()
        self.wired = False
        self.draining = False
        self.intakes: list[Intake] = []
        self.tasks: list[Forever | Periodic] = []
        self.firsts: list[Work] = []
        self.flushes: list[tuple[str, Work]] = []
        self.stack = AsyncExitStack()
        self._checks: list[tuple[str, Callable[[], str | None]]] = []

    async def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Open something that stays open until everything else has ended."""
        return await self.stack.enter_async_context(context)

    def consume(
        self,
        *,
        queues: Queues,
        queue: str,
        dlq: str,
        handler: Handler,
        settings: ConsumerSettings | None = None,
        context_of: ContextOf = messaging.context_in_attributes,
    ) -> Consumer:
        """Consume a queue with a handler, by the worker's own settings unless others are given."""
        consumer = Consumer(
            queues=queues,
            queue=queue,
            dlq=dlq,
            handler=handler,
            log=self.log,
            settings=settings or ConsumerSettings.of(self.config),
            telemetry=self.telemetry,
            context_of=context_of,
            now=self.now,
            roll=self.roll,
        )
        self.intake(consumer)
        return consumer

    def intake(self, intake: Intake) -> None:
        """Run an intake of the service's own."""
        self.intakes.append(intake)

    def first(self, work: Work) -> None:
        """Do work before anything is taken in, in the order declared; given up when the worker is asked to stop."""
        self.firsts.append(work)

    def background(self, name: str, work: Work) -> None:
        """Run work beside the intakes until they have drained. Raising or returning earlier ends the process."""
        self.tasks.append(Forever(name, work))

    def every(
        self,
        seconds: float,
        work: Work,
        *,
        name: str,
        jitter: float = 0.1,
        tolerate: tuple[type[Exception], ...] = (),
        at_once: bool = False,
    ) -> None:
        """Repeat work until the intakes have drained. Raising what is not tolerated ends the process."""
        self.tasks.append(
            Periodic(
                name,
                seconds,
                work,
                log=self.log,
                jitter=jitter,
                tolerate=tolerate,
                at_once=at_once,
                telemetry=self.telemetry,
                roll=self.roll,
            )
        )

    def ready(self, name: str, check: Callable[[], str | None]) -> None:
        """Count as ready only while `check` finds nothing missing; it returns what is, in a few words."""
        self._checks.append((name, check))

    def on_flush(self, name: str, work: Work) -> None:
        """Run work after draining, in the order declared, when nothing else runs any more."""
        self.flushes.append((name, work))

    def unready(self) -> list[str]:
        """Why the worker should get no traffic yet, or no more; empty when ready."""
        if self.draining:
            return ["draining"]
        if not self.wired:
            return ["starting"]
        return [f"{name}: {missing}" for name, check in self._checks if (missing := check())]

    def ailments(self) -> list[str]:
        """Why the process should be restarted; empty when it is live."""
        return [ailment for intake in self.intakes if (ailment := intake.ailment())]
