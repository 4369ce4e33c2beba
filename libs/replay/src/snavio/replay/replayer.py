"""Sends commands again. Each passes every check anew; nothing is deleted before it is back on the bus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import msgspec

from snavio.aws.errors import SnavioError
from snavio.replay.emitter import Emitter
from snavio.replay.origins import Origin, Taken
from snavio.replay.records import Records, ReplayRecord
from snavio.replay.recovered import Recovered
from snavio.replay.resigning import Emission, ReplayKey, Stamp, resigned
from snavio.wire.canonical import NotCanonicalisableError


class Step(msgspec.Struct, frozen=True):
    """What a run reports as it goes."""

    record: ReplayRecord
    depth: int | None
    """About how many messages there were at the start, where that could be told."""


def _nobody(_step: Step) -> None:
    """Nobody watches."""


class Replayer:
    """One run of a replay, from the beginning or from where an earlier run stopped."""

    def __init__(
        self,
        origin: Origin,
        emitter: Emitter,
        records: Records,
        key: ReplayKey,
        *,
        clock: Callable[[], float],
        rate: float | None = None,
        on_step: Callable[[Step], None] = _nobody,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._origin = origin
        self._emitter = emitter
        self._records = records
        self._key = key
        self._clock = clock
        self._rate = rate
        self._on_step = on_step
        self._sleep = sleep
        self._sent: set[tuple[str, str]] = set()
        self._left: list[Taken] = []

    async def run(self, record: ReplayRecord) -> ReplayRecord:
        """Replay what the record asks for, and keep in it what became of it."""
        depth = await self._origin.depth()
        await self._records.save(record)
        await self._records.note(record, "replay-started")
        record.failure = None
        try:
            async for lot in self._origin.taken():
                try:
                    await self._lot(record, lot)
                except BaseException:
                    # Whoever goes on must find these at once; what was deleted already is beyond reach.
                    self._left += lot
                    raise
                await self._records.save(record)
                self._on_step(Step(record, depth))
            record.finished_at = self._clock()
        except SnavioError as error:
            record.failure = str(error)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(record)
        return record

    async def _end(self, record: ReplayRecord) -> None:
        await self._origin.leave(self._left)
        await self._records.save(record)
        await self._records.note(record, "replay-finished" if record.finished_at else "replay-interrupted")

    async def _lot(self, record: ReplayRecord, lot: list[Taken]) -> None:
        counts = record.counts
        counts.seen += len(lot)
        wanted: list[tuple[Taken, Recovered]] = []
        unwanted: list[Taken] = []
        for one in lot:
            if one.command is None:
                counts.unreadable += 1
                unwanted.append(one)
            elif record.filters.accept(one.command):
                wanted.append((one, one.command))
            else:
                unwanted.append(one)
        counts.matched += len(wanted)
        # What is left is left only at the end, or it would be taken again.
        if record.dry_run:
            unwanted += [one for one, _ in wanted]
        else:
            self._left += await self._replay(record, wanted)
        if self._origin.keeps_unwanted:
            self._left += unwanted
        else:
            await self._origin.done(unwanted)

    async def _replay(self, record: ReplayRecord, wanted: Sequence[tuple[Taken, Recovered]]) -> list[Taken]:
        """Emit these, delete what was emitted, and return what was not."""
        failed: list[Taken] = []
        stamp = Stamp(record.replay_id, record.reason)
        for start in range(0, len(wanted), self._at_once):
            ready: list[tuple[Taken, Recovered, Emission]] = []
            repeated: list[Taken] = []
            for one, command in wanted[start : start + self._at_once]:
                if (command.source, command.id) in self._sent:
                    repeated.append(one)
                    continue
                try:
                    # Dated as it leaves: a replay at a slow rate must not send what is already late.
                    ready.append((one, command, resigned(command, stamp, self._key, self._clock())))
                except NotCanonicalisableError:
                    record.counts.unreadable += 1
                    failed.append(one)
                else:
                    self._sent.add((command.source, command.id))
            faults = await self._emitter.emit([emission for _, _, emission in ready])
            emitted = [one for (one, _, _), fault in zip(ready, faults, strict=True) if fault is None]
            for (one, command, _), fault in zip(ready, faults, strict=True):
                if fault is not None:
                    self._sent.discard((command.source, command.id))
                    failed.append(one)
            record.counts.emitted += len(emitted)
            record.counts.repeated += len(repeated)
            record.counts.failed += len(ready) - len(emitted)
            await self._origin.done([*emitted, *repeated])
            if self._rate:
                await self._sleep(len(ready) / self._rate)
        return failed

    @property
    def _at_once(self) -> int:
        return 10 if self._rate is None else max(1, min(10, int(self._rate)))
