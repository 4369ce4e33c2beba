"""The intake of the outbox worker: its share of the stream's shards, read, renewed, handed over and given back."""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.aws.errors import NotFound, Permanent, SnavioError, Transient
from snavio.outbox.shard_reader import ShardReader
from snavio.outbox.shards import plan
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.outbox.carrier import Carrier
    from snavio.outbox.lanes import Lanes
    from snavio.outbox.ports import Rows, Stream
    from snavio.outbox.shard_leases import LeaseBook, ShardLeases
    from snavio.outbox.shards import ShardLease
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry


class IntakeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How shards are shared and read."""

    lease_seconds: float = 15.0
    rebalance_seconds: float = 3.0
    checkpoint_seconds: float = 1.0
    poll_seconds: float = 0.25
    rows_in_hand: int = 20_000


class ShardStatus(msgspec.Struct, frozen=True):
    """One shard this worker reads."""

    shard: str
    in_hand: int
    behind_seconds: float


class IntakeStatus(msgspec.Struct, frozen=True):
    """What the intake is doing."""

    shards: list[ShardStatus]
    rows_in_hand: int
    draining: bool


class _Held:
    """A shard in our hands."""

    def __init__(self, reader: ShardReader) -> None:
        self.reader = reader
        self.stop = anyio.Event()


class StreamIntake:
    """Reads the shards this worker holds leases for. An `Intake` of `snavio.runtime.worker`."""

    name = "outbox-stream"

    def __init__(
        self,
        *,
        stream: Stream,
        leases: ShardLeases,
        carrier: Carrier,
        lanes: Lanes,
        rows: Rows,
        me: str,
        log: Log,
        settings: IntakeSettings | None = None,
        telemetry: Telemetry = SILENT,
        now: Callable[[], float] = time.time,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._stream = stream
        self._leases = leases
        self._carrier = carrier
        self._lanes = lanes
        self._rows = rows
        self._me = me
        self._log = log
        self._settings = settings or IntakeSettings()
        self._telemetry = telemetry
        self._now = now
        self._roll = roll
        self._held: dict[str, _Held] = {}
        self._draining = anyio.Event()
        self._deadline = float("inf")
        self._work: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Read until drained, then give every shard back with how far it is settled."""
        try:
            async with anyio.create_task_group() as readers:
                self._work = readers.cancel_scope
                self._work.deadline = self._deadline
                while not self._draining.is_set():
                    await self._balance(readers)
                    with anyio.move_on_after(self._settings.rebalance_seconds):
                        await self._draining.wait()
                for held in self._held.values():
                    held.stop.set()
                await self._lanes.flush()
        finally:
            with anyio.move_on_after(2.0, shield=True), contextlib.suppress(SnavioError):
                await self._leases.depart()

    def drain(self, seconds: float) -> None:
        """Read no more; publish what is in hand within so many seconds."""
        if not self._draining.is_set():
            self._deadline = anyio.current_time() + seconds
            if self._work is not None:
                self._work.deadline = self._deadline
            self._draining.set()

    def status(self) -> IntakeStatus:
        """What it is doing."""
        now = self._now()
        return IntakeStatus(
            shards=[
                ShardStatus(
                    shard, held.reader.progress.in_hand, round(max(0.0, now - held.reader.position), 3)
                )
                for shard, held in self._held.items()
            ],
            rows_in_hand=self._lanes.pending,
            draining=self._draining.is_set(),
        )

    def ailment(self) -> str | None:
        """Nothing here is cured by a restart that a lease running out would not cure."""
        return None

    async def _balance(self, readers: anyio.abc.TaskGroup) -> None:
        """Look around, claim what is ours to read, let go of what is too much."""
        try:
            await self._leases.announce()
            stream = await self._stream.arn()
            shards = await self._stream.shards(stream)
            book = await self._leases.read(stream)
            decided = plan(shards, book.leases, me=self._me, workers=book.workers, now=self._now())
            for shard in decided.release:
                if shard in self._held:
                    self._held[shard].stop.set()
            for shard in decided.claim:
                # One we still hold, its lease run out or being given back, is for its own task to end first.
                if shard not in self._held and (lease := await self._leases.claim(shard, stream)):
                    self._begin(lease, readers)
            await self._tidy(book, decided.forget)
        except (Transient, NotFound) as error:
            self._log.warning(LogEvent.STREAM_READ_FAILED, error=error)

    async def _tidy(self, book: LeaseBook, gone: tuple[str, ...]) -> None:
        for shard in gone:
            await self._leases.forget(book.leases[shard])
        for worker in book.stale_workers:
            await self._leases.depart(worker)

    def _begin(self, lease: ShardLease, readers: anyio.abc.TaskGroup) -> None:
        self._log.info(LogEvent.LEASE_ACQUIRED, shard=lease.shard, checkpoint=lease.checkpoint)
        reader = ShardReader(
            lease,
            stream=self._stream,
            carrier=self._carrier,
            lanes=self._lanes,
            rows=self._rows,
            log=self._log,
            now=self._now,
            roll=self._roll,
            telemetry=self._telemetry,
            poll_seconds=self._settings.poll_seconds,
            rows_in_hand=self._settings.rows_in_hand,
        )
        self._held[lease.shard] = _Held(reader)
        readers.start_soon(self._hold, self._held[lease.shard])

    async def _hold(self, held: _Held) -> None:
        """Read a shard and keep its lease until it ends, is lost or is to be given back."""
        reader = held.reader
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep, held, tasks.cancel_scope)
                await reader.run(held.stop)
                # What is in hand is settled by the lanes; until then the shard stays ours.
                await reader.all_settled()
                tasks.cancel_scope.cancel()
        finally:
            del self._held[reader.lease.shard]
            if not reader.lost:
                with anyio.move_on_after(2.0, shield=True), contextlib.suppress(SnavioError):
                    await self._give_back(reader)

    async def _give_back(self, reader: ShardReader) -> None:
        checkpoint = reader.progress.checkpoint
        if reader.ended and not reader.progress.in_hand:
            await self._leases.renew(
                reader.lease, checkpoint=checkpoint, position=reader.position, finished=True
            )
            self._log.info(LogEvent.SHARD_FINISHED, shard=reader.lease.shard)
        else:
            await self._leases.release(reader.lease, checkpoint=checkpoint, position=reader.position)

    async def _keep(self, held: _Held, reading: anyio.CancelScope) -> None:
        """Renew the lease and record the checkpoint; stop reading once the lease is, or may be, somebody else's."""
        reader = held.reader
        until = reader.lease.until
        while True:
            await anyio.sleep(self._settings.checkpoint_seconds)
            try:
                renewed = await self._leases.renew(
                    reader.lease, checkpoint=reader.progress.checkpoint, position=reader.position
                )
            except (Transient, Permanent) as error:
                self._log.warning(LogEvent.STREAM_READ_FAILED, error=error, shard=reader.lease.shard)
                if self._now() < until:
                    continue
                renewed = None
            if renewed is None:
                self._log.warning(LogEvent.LEASE_LOST, shard=reader.lease.shard)
                reader.lost = True
                reading.cancel()
                return
            until = renewed.until
