"""The narrow ports the outbox worker reaches the world through; `snavio.outbox.boto` implements them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from snavio.aws.values import Fault
    from snavio.outbox.values import RecordPage, RowKey, Shard, StoredRow
    from snavio.wire.outbox import OutboxRow

EXPIRED = "ExpiredIteratorException"
"""Code of the error when an iterator was kept longer than its fifteen minutes."""
TRIMMED = "TrimmedDataAccessException"
"""Code of the error when the records asked for are older than the stream keeps."""


class Stream(Protocol):
    """The stream of the outbox table."""

    async def arn(self) -> str:
        """The stream the table has now."""
        ...

    async def shards(self, stream: str) -> list[Shard]:
        """Every shard it lists."""
        ...

    async def iterator(self, stream: str, shard: str, *, after: str | None) -> str:
        """Where to read on after a record, or the oldest kept; `Permanent` with code `TRIMMED` when it is gone."""
        ...

    async def read(self, iterator: str, *, limit: int) -> RecordPage:
        """The next records; `Permanent` with code `EXPIRED` or `TRIMMED` when the iterator serves no more."""
        ...


class Topics(Protocol):
    """SNS."""

    async def publish(self, tenant: str, rows: Sequence[OutboxRow]) -> list[Fault | None]:
        """Publish up to ten rows to a tenant's topic in one call; one answer for each, in order, None for published.

        Raises when the call as a whole failed: `Permanent` when the topic cannot be published to.
        """
        ...


class Rows(Protocol):
    """The outbox table."""

    async def existing(self, keys: Sequence[RowKey]) -> set[RowKey]:
        """Those of up to a hundred rows that are still there."""
        ...

    async def remove(self, keys: Sequence[RowKey]) -> None:
        """Remove up to 25 rows; removing an absent one is no error."""
        ...

    async def annotate(self, row: StoredRow, *, alerted: bool, refused_at: int = 0) -> None:
        """Note on a row, if it is still there, why it is."""
        ...

    async def write(self, rows: Sequence[OutboxRow]) -> None:
        """Add up to 25 rows."""
        ...

    def all(self) -> AsyncIterator[list[StoredRow]]:
        """Every row, a page at a time."""
        ...
