"""What passes between the parts of the outbox worker: rows in hand, records of the stream, shards."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from snavio.wire.outbox import OutboxRow

if TYPE_CHECKING:
    from snavio.aws.values import Item

RowKey: TypeAlias = tuple[str, str]
"""Partition and sort key of a row."""


class StoredRow(OutboxRow, frozen=True, gc=False):
    """A row with what the outbox itself noted on it while it could not be delivered."""

    alerted: int = 0
    """1 once the alerts it calls for are recorded."""
    refused_at: int = 0
    """When its topic refused this very row, milliseconds since the epoch; 0 when it never did."""

    @property
    def key(self) -> RowKey:
        """What names it in the table."""
        return self.pk, self.sk


class Fate(StrEnum):
    """What became of a row that was offered for publishing."""

    DELIVERED = "delivered"
    """Published, and removed from the table."""
    LEFT = "left"
    """Still in the table, for the sweeper."""
    REFUSED = "refused"
    """Still in the table; its topic refused this very row, so trying it again soon is useless."""


class Shard(msgspec.Struct, frozen=True):
    """One shard of the stream, as AWS lists it."""

    id: str
    parent: str | None = None


class Record(msgspec.Struct, frozen=True):
    """One change of the table. Only insertions carry news: a row is written once and then only annotated or removed."""

    sequence: str
    created_at: float
    row: StoredRow | None = None
    """None for anything but the insertion of a readable row."""
    unreadable: str | None = None
    """What is wrong with an inserted row that is not one of ours."""


class RecordPage(msgspec.Struct, frozen=True):
    """Records in order; without a next iterator the shard is closed and read to its end."""

    records: list[Record]
    next_iterator: str | None


def read_row(item: Item) -> StoredRow:
    """The row in an item. Raises `msgspec.ValidationError` for what is not one."""
    return msgspec.convert(item, StoredRow)
