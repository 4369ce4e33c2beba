"""The way of telemetry: the stream of the outbox table, its rows and the tenants' topics, as one outbox worker reaches them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from simulation.virtual_loop import true_time

from snavio.aws.errors import Permanent
from snavio.outbox.alert_choices import AlertChoices
from snavio.outbox.boto.rows import DynamoRows
from snavio.outbox.notebook import Notebook
from snavio.outbox.ports import EXPIRED
from snavio.outbox.values import Record, RecordPage, Shard, read_row
from snavio.outbox.wiring import wire_carrying
from snavio.telemetry.alert_log import AlertLog
from snavio.telemetry.alert_store import AlertStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from simulation.faults import Storm
    from simulation.processes import Process

    from snavio.aws.boto.session import Aws
    from snavio.outbox.config import OutboxConfig
    from snavio.outbox.values import RowKey, StoredRow
    from snavio.runtime.worker import Worker

_SHARD_RECORDS = (5, 60)
_ITERATOR_EXPIRES = 0.02


class ShardLog:
    """What happened to the outbox table, in shards that close and are followed by their children."""

    def __init__(self, rng: Random, behind: float) -> None:
        self._rng = rng
        self._behind = behind
        self.records: dict[str, list[Record]] = {}
        self.parents: dict[str, str | None] = {}
        self.open = ""
        self._room = 0
        self._seen_from: dict[str, list[float]] = {}
        self.note(None)

    def note(self, row: StoredRow | None) -> None:
        """Record a row's insertion, or None for any other change."""
        if not self._room:
            self._open_next()
        self._room -= 1
        kept = self.records[self.open]
        kept.append(Record(f"{self.open}-{len(kept):04d}", true_time(), row=row))
        # In the order in which they were written, however long each takes.
        seen = self._seen_from[self.open]
        seen.append(max([true_time() + self._rng.uniform(0.0, self._behind), *seen[-1:]]))

    def ends_at(self, shard: str) -> int:
        """How many records of a shard can be seen by now."""
        return bisect_right(self._seen_from[shard], true_time())

    def _open_next(self) -> None:
        number = f"shard-{len(self.records):03d}"
        self.records[number], self.parents[number] = [], self.open or None
        self._seen_from[number] = []
        self.open, self._room = number, self._rng.randint(*_SHARD_RECORDS)


class StreamedItems(dict[Any, Any]):
    """The items of a table whose changes go to a stream; `ever` keeps what was there at any time."""

    def __init__(self, log: ShardLog) -> None:
        super().__init__()
        self._log = log
        self.ever: dict[Any, Any] = {}

    def __setitem__(self, place: Any, item: Any) -> None:
        self._log.note(None if place in self else read_row(item))
        super().__setitem__(place, item)
        self.ever[place] = item

    def pop(self, place: Any, default: Any = None) -> Any:
        if place in self:
            self._log.note(None)
        return super().pop(place, default)


class SimulatedStream:
    """`Stream` on the log, through the weather."""

    def __init__(self, log: ShardLog, storm: Storm, who: Process) -> None:
        self._log = log
        self._storm = storm
        self._who = who

    async def arn(self) -> str:
        return "arn:stream"

    async def shards(self, stream: str) -> list[Shard]:
        async def act() -> list[Shard]:
            return [Shard(shard, parent) for shard, parent in self._log.parents.items()]

        return await self._storm.carry(self._who, "stream.shards", "outbox", act)

    async def iterator(self, stream: str, shard: str, *, after: str | None) -> str:
        async def act() -> str:
            return f"{shard}|{0 if after is None else int(after.rpartition('-')[2]) + 1}"

        return await self._storm.carry(self._who, "stream.iterator", shard, act)

    async def read(self, iterator: str, *, limit: int) -> RecordPage:
        shard, start = iterator.split("|")

        async def act() -> RecordPage:
            if self._storm.strikes(_ITERATOR_EXPIRES):
                raise Permanent("The iterator has expired.", code=EXPIRED)
            kept, first = self._log.records[shard], int(start)
            # What comes again while it is in hand is left to the sweeper.
            if not self._who.spared and self._storm.strikes(self._storm.weather.repeated):
                first = max(0, first - self._storm.rng.randint(1, 3))
            end = max(int(start), min(self._log.ends_at(shard), first + limit))
            page = kept[first:end]
            closed = shard != self._log.open and end == len(kept)
            return RecordPage(page, None if closed else f"{shard}|{end}")

        return await self._storm.carry(self._who, "stream.read", shard, act)


class SimulatedRows(DynamoRows):
    """The outbox table as the worker reaches it; the batches that the port of tables has not are made here."""

    def __init__(self, aws: Aws, items: StreamedItems, table: str, storm: Storm, who: Process) -> None:
        super().__init__(aws.client, aws.tables, table)
        self._items = items
        self._storm = storm
        self._who = who

    async def existing(self, keys: Sequence[RowKey]) -> set[RowKey]:
        async def act() -> set[RowKey]:
            return {key for key in keys if key in self._items}

        return await self._storm.carry(self._who, "rows.existing", "outbox", act)

    async def remove(self, keys: Sequence[RowKey]) -> None:
        async def act() -> None:
            for key in keys:
                self._items.pop(key)

        await self._storm.carry(self._who, "rows.remove", "outbox", act)


class SimulatedTopics:
    """`Topics` that remember what each was given."""

    def __init__(self, published: list[tuple[str, str]], storm: Storm, who: Process) -> None:
        self._published = published
        self._storm = storm
        self._who = who

    async def publish(self, tenant: str, rows: Sequence[Any]) -> list[Any]:
        taken = self._storm.part(self._who, len(rows))

        async def act() -> list[Any]:
            self._published += [
                (tenant, row.body) for row, is_taken in zip(rows, taken, strict=True) if is_taken
            ]
            return [None if is_taken else self._storm.refusal() for is_taken in taken]

        return await self._storm.carry(self._who, "topics.publish", tenant, act)


def wire_outbox(world: Any, who: Process, aws: Aws, config: OutboxConfig, worker: Worker) -> None:
    """The outbox worker less its channels: mail, webhooks and the watch over telemetry queues."""
    names, storm = world.names, world.storm
    choices = AlertChoices(AlertStore(aws.tables, aws.vault, names), now=worker.now, log=worker.log)
    book = AlertLog(aws.tables, names.alerts)
    wire_carrying(
        aws,
        config,
        worker,
        stream=SimulatedStream(world.shard_log, storm, who),
        rows=SimulatedRows(aws, world.outbox, names.outbox, storm, who),
        topics=SimulatedTopics(world.history.published, storm, who),
        notebook=Notebook(book, choices, now=worker.now, log=worker.log, bursts=config.alerts.bursts),
    )
