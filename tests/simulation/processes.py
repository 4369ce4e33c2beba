"""The platform's processes: the services' own wiring under the real life cycle, killed and started again."""

from __future__ import annotations

import asyncio
import random
import signal
from typing import TYPE_CHECKING, Any

from simulation.checkers import ROUNDING
from simulation.faults import Dead, StormyPort, StormyQueues, StormyTables
from simulation.virtual_loop import true_time

from snavio.aws.boto.session import Aws
from snavio.fast import wiring as fast_wiring
from snavio.fast.config import FastConfig
from snavio.outbox.config import OutboxConfig
from snavio.runtime import lifecycle
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import FakeSignals
from snavio.runtime.worker import Worker
from snavio.shield import wiring as shield_wiring
from snavio.shield.config import ShieldConfig
from snavio.slow import wiring as slow_wiring
from snavio.slow.config import SlowConfig

if TYPE_CHECKING:
    from simulation.weather import Settings


class _Ears(list[dict[str, Any]]):
    """Listens to a worker's log for what no worker should ever say."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def append(self, line: dict[str, Any]) -> None:
        if self._process.alive:
            self._process.heard(line)


class Process:
    """One run of one service, from its start to its death."""

    def __init__(self, world: Any, service: str, number: int) -> None:
        self.id = f"{service}-{number}"
        self.service = service
        self.alive = True
        self.stopping = False
        self._stopped_at = 0.0
        self._stopped_in_calm = False
        self._world = world
        self._rng = random.Random(f"{world.seed}/{self.id}")
        self.spared = service == "outbox" and not world.settings.swept
        """Its calls to anything but the stream go well."""
        self.skew = self._rng.uniform(-1, 1) * world.settings.skew
        self._signals = FakeSignals()
        self._root: asyncio.Task[int] | None = None

    def must_live(self) -> None:
        """Let nothing through from a dead worker."""
        if not self.alive:
            raise Dead

    def crash(self, why: str) -> None:
        """Die here and now. What its tasks still do on their way out reaches nobody."""
        if self.alive:
            self.alive = False
            self._world.note(self.id, "crashed", why)
            self._world.history.crashed.add(self.id)
            if self._root is not None:
                self._root.cancel()

    def stop(self) -> None:
        """Ask it to finish and go."""
        if self.alive and not self.stopping:
            self.stopping = True
            self._stopped_at, self._stopped_in_calm = true_time(), self._world.storm.calm
            self._world.note(self.id, "told to stop", "")
            self._signals.send(signal.SIGTERM)

    def heard(self, line: dict[str, Any]) -> None:
        """It said something at level error."""
        what = line.get("event")
        if (
            what == LogEvent.OUTBOX_WRITE_FAILED
            and self.service == "outbox"
            and line.keys() & {"rows", "tenant"}
        ):
            # A published row that cannot be removed is published again, which its readers can tell; and that a tenant's
            # topic fails is told as soon as it can be.
            return
        if what == LogEvent.FLUSH_FAILED and self.stopping and not self._stopped_in_calm:
            self._world.history.unflushed.add(self.id)
            return  # it has so long for it and no longer
        self._world.broke(self.id, f"{what}: {line.get('exc_info')!r}")

    async def live(self) -> None:
        """Run until it ends, one way or another."""
        service, settings = self.service, self._world.settings
        config = config_of(service, settings)
        log = recording_log(_Ears(self), level="error")
        worker = Worker(service, config, worker_id=self.id, log=log, now=self._now, roll=self._rng.random)

        async def wire(worker: Worker) -> None:
            self._world.wire(self, config, worker)

        self._world.note(self.id, "started", "")
        self._root = asyncio.get_running_loop().create_task(
            lifecycle.run(worker, wire, signals=self._signals), name=self.id
        )
        await asyncio.wait([self._root])
        if not self._root.cancelled():
            failure = self._root.exception()
            if failure is not None and self.alive:
                self._world.broke(self.id, f"failed: {failure!r}")
            elif self.alive:
                self._ended_with(self._root.result())
        self.alive = False
        self._world.note(self.id, "ended", "")

    def _ended_with(self, code: int) -> None:
        """It ended in an orderly way: rightly so, with the right code, and in time?"""
        if not self.stopping:
            self._world.broke(self.id, f"ended by itself with code {code}")
            return
        is_flushed = self.id not in self._world.history.unflushed
        if code != (lifecycle.CLEAN if is_flushed else lifecycle.FAILED):
            self._world.broke(self.id, f"was told to stop and ended with code {code}")
        took, promised = true_time() - self._stopped_at, self._world.settings.drain_seconds
        if not self._stopped_in_calm:
            promised += _FAREWELL_SECONDS + _FLUSH_SECONDS
        if took > promised + ROUNDING:
            self._world.broke(
                self.id, f"was told to stop and took {took:.3f} s for it; promised are {promised:g}"
            )

    def aws(self) -> Aws:
        """The ports, through the weather."""
        world = self._world

        async def no_client(service: str) -> Any:
            raise AssertionError(f"nobody should ask for a raw {service} client here")

        return Aws(
            queues=StormyQueues(world, self),
            tables=StormyTables(world, self),
            objects=StormyPort(world, self, world.objects, "objects"),
            vault=StormyPort(world, self, world.vault, "vault"),
            client=no_client,
            region=world.names.region,
        )

    def _now(self) -> float:
        return true_time() + self.skew


_NEVER_SECONDS = 10_000.0
_FAREWELL_SECONDS = 4.0
"""What a worker may take to hand back what it has in hand when its time is over."""
_FLUSH_SECONDS = 5.0
WIRINGS: dict[str, Any] = {
    "shield": shield_wiring.wire_on,
    "fast": fast_wiring.wire_on,
    "slow": slow_wiring.wire_on,
}
SERVICES = (*WIRINGS, "outbox")


def config_of(service: str, settings: Settings) -> Any:
    """A service's settings: its own defaults, with everything that waits waiting less."""
    if service == "outbox":
        return OutboxConfig(
            region="eu-central-1",
            # Without a sweeper what was noted too early is lost, where there is time to die before it is published.
            linger_seconds=0.3 if settings.swept else 0.9,
            lease_seconds=3.0,
            rebalance_seconds=1.0,
            checkpoint_seconds=0.7 if settings.swept else 0.2,
            poll_seconds=0.5,
            sweep_seconds=4.0 if settings.swept else _NEVER_SECONDS,
            missed_after_seconds=8.0,
            patience_seconds=60.0,
            drain_seconds=settings.drain_seconds,
            flush_seconds=_FLUSH_SECONDS,
        )
    shared: dict[str, Any] = {
        "region": "eu-central-1",
        "snapshots": False,
        "load_segments": 1,
        "refresh_seconds": settings.refresh_seconds,
        "clock_tolerance_seconds": settings.skew,
        "polls": 1,
        "handlers": 3,
        "batches_in_hand": 4,
        "wait_seconds": 4,
        "visibility_seconds": settings.visibility_seconds,
        "drain_seconds": settings.drain_seconds,
        "flush_seconds": _FLUSH_SECONDS,
    }
    for cache, (fresh, stale) in settings.ttls.items():
        shared |= {f"{cache}_fresh_seconds": fresh, f"{cache}_stale_seconds": stale}
    if service == "shield":
        return ShieldConfig(**shared, replay_window_seconds=settings.replay_window_seconds)
    if service == "fast":
        return FastConfig(**shared, lease_seconds=settings.lease_seconds)
    return SlowConfig(
        **shared,
        claim_seconds=settings.claim_seconds,
        delivery_attempts=settings.delivery_attempts,
        dedupe_seconds=settings.dedupe_seconds,
        global_ban_after=settings.global_ban_after,
        global_ban_within_seconds=settings.global_ban_within_seconds,
        global_ban_seconds=settings.global_ban_seconds,
    )
