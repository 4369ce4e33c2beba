"""The outbox row: one telemetry event on its way to one tenant."""

from __future__ import annotations

import msgspec

from snavio.wire.events import Event, encode_event, event_type

RETENTION_SECONDS = 14 * 24 * 3600
"""How long an undelivered row is kept unless the platform says otherwise."""


class OutboxRow(msgspec.Struct, frozen=True, gc=False):
    """A row as it stands in the table.

    A tenant's rows are spread over sixteen partitions by the first digit of the event id, so that one tenant may report
    more than a single partition could take.
    """

    pk: str
    sk: str
    tenant: str
    event_type: str
    source: str
    body: str
    written_at: int
    """Milliseconds since the epoch."""
    expires_at: int
    """Seconds since the epoch, for the table's TTL."""


def outbox_row(event: Event, now: float, *, retention_seconds: int = RETENTION_SECONDS) -> OutboxRow:
    """The row for an event. The same event always gets the same key."""
    source = getattr(event, "source", "")
    return OutboxRow(
        pk=f"{event.tenant}#{event.event_id[0]}",
        sk=event.event_id,
        tenant=event.tenant,
        event_type=event_type(event),
        source=source if isinstance(source, str) else "",
        body=encode_event(event).decode(),
        written_at=int(now * 1000),
        expires_at=int(now) + retention_seconds,
    )
