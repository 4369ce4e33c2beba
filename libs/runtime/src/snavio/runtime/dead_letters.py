"""What a dead message looks like in its dead-letter queue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from snavio.aws.ports import MAX_BATCH, MAX_MESSAGE_BYTES
from snavio.aws.values import Outgoing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snavio.aws.values import Received

REASON = "snavio.dead-reason"
ORIGIN = "snavio.dead-id"
_MAX_ATTRIBUTES = 10
_MAX_REASON = 256
# SQS refuses characters that XML cannot carry.
_UNSENDABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def dead_letter(message: Received, reason: str) -> Outgoing:
    """The message as it came, with why it died and the id it had; ours win where ten attributes are not enough."""
    ours = {REASON: _UNSENDABLE.sub("?", reason)[:_MAX_REASON] or "unspecified", ORIGIN: message.id}
    kept = [(name, value) for name, value in message.attributes.items() if name not in ours]
    return Outgoing(
        body=message.body,
        group=message.group,
        attributes={**dict(kept[: _MAX_ATTRIBUTES - len(ours)]), **ours},
    )


def sendable_batches(messages: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    """The messages in order, cut into batches that keep to the limits of one send: ten, and 1 MiB together."""
    batch: list[Outgoing] = []
    total = 0
    for message in messages:
        size = _size(message)
        if batch and (len(batch) == MAX_BATCH or total + size > MAX_MESSAGE_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(message)
        total += size
    if batch:
        yield batch


def _size(message: Outgoing) -> int:
    # An attribute counts its name, its type ("String") and its value.
    attributes = sum(
        len(name.encode()) + 6 + len(value.encode()) for name, value in message.attributes.items()
    )
    return len(message.body.encode()) + attributes
