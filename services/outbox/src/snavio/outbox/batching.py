"""How rows are cut into the batches SNS accepts. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snavio.wire.outbox import OutboxRow

MAX_ROWS = 10
"""Messages in one PublishBatch."""
MAX_BYTES = 262_144
"""One SNS message, and one PublishBatch: bodies and attributes together."""
# Names and types of the attributes, and room for what SNS may count that we do not.
_ENVELOPE_BYTES = 256


def published_bytes(row: OutboxRow) -> int:
    """What a row weighs as a message of its topic."""
    return len(row.body.encode()) + len(row.event_type) + len(row.tenant) + len(row.source) + _ENVELOPE_BYTES


def next_batch(rows: Iterable[OutboxRow]) -> int:
    """How many of the rows, in their order, make the next batch: at least one, however large."""
    count = weight = 0
    for row in rows:
        weight += published_bytes(row)
        if count == MAX_ROWS or (count and weight > MAX_BYTES):
            break
        count += 1
    return count
