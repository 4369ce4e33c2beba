"""The entry of a service: its `__main__` ends in `sys.exit(main("shield", ShieldConfig, wire))`."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from typing import TYPE_CHECKING, TypeVar

from snavio.runtime.common_config import CommonConfig
from snavio.runtime.config import load
from snavio.runtime.errors import ConfigError
from snavio.runtime.lifecycle import run
from snavio.runtime.logs import adopt_libraries, open_log
from snavio.runtime.observing import Observing
from snavio.runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

C = TypeVar("C", bound=CommonConfig)

MISCONFIGURED = 78
"""EX_CONFIG: restarting would not help."""


def main(
    service: str,
    config_type: type[C],
    wire: Callable[[C, Worker], Awaitable[None]],
    *,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Read the settings, run the worker `wire` describes, and return the exit code."""
    try:
        config = load(config_type, environ, service=service)
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201 - for the person starting it; there is no log yet
        return MISCONFIGURED

    async def live() -> int:
        worker_id = config.worker_id or f"{service}-{uuid.uuid4().hex[:12]}"
        log = open_log(
            service=service, worker_id=worker_id, level=config.log_level, log_format=config.log_format
        )
        adopt_libraries(log)
        observing = Observing(service, worker_id, config)
        worker = Worker(service, config, worker_id=worker_id, log=log, telemetry=observing.telemetry)

        async def wire_all(worker: Worker) -> None:
            await wire(config, worker)
            await observing.wire(worker)

        return await run(worker, wire_all)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(live())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - optional where it has no wheel
    except ImportError:
        return None
    return uvloop.new_event_loop
