"""What is kept of a replay: who, from where, why, how far. A replay is resumed from its record."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Tables
from snavio.control.directory import Directory
from snavio.replay.recovered import Filters
from snavio.wire.names import Names

ARCHIVE = "archive"
_PARTITION = "replays"


class Counts(msgspec.Struct, kw_only=True):
    """What became of the messages looked at."""

    seen: int = 0
    matched: int = 0
    emitted: int = 0
    repeated: int = 0
    """Found more than once in this replay, and emitted once."""
    unreadable: int = 0
    failed: int = 0


class ReplayRecord(msgspec.Struct, kw_only=True):
    """One replay."""

    replay_id: str
    operator: str
    origin: str
    """`archive`, or the ARN of a queue."""
    reason: str
    filters: Filters
    started_at: float
    dry_run: bool = False
    counts: Counts = msgspec.field(default_factory=Counts)
    finished_at: float | None = None
    failure: str | None = None


class Records:
    """Replays in the control table, with an audit record at the start and at the end of each run."""

    def __init__(self, tables: Tables, names: Names, *, clock: Callable[[], float]) -> None:
        self._tables = tables
        self._table = names.control
        self._directory = Directory(tables, names, clock=clock)

    async def find(self, replay_id: str) -> ReplayRecord:
        """A replay there was. Raises `SnavioError`."""
        item = await self._tables.get(self._table, {"pk": _PARTITION, "sk": replay_id})
        if item is None:
            raise SnavioError(f"There is no replay {replay_id}.")
        return msgspec.json.decode(str(item["body"]), type=ReplayRecord)

    async def save(self, record: ReplayRecord) -> None:
        """Keep how far it has come."""
        body = msgspec.json.encode(record).decode()
        await self._tables.put(self._table, {"pk": _PARTITION, "sk": record.replay_id, "body": body})

    async def note(self, record: ReplayRecord, action: str) -> None:
        """Put it into the audit as it is now."""
        await self._directory.note(
            actor=record.operator,
            action=action,
            subject=f"{_PARTITION}#{record.replay_id}",
            after=msgspec.json.encode(record).decode(),
        )
