"""The message a target receives, and its claim check when it is too large for the target's queue."""

from __future__ import annotations

import hashlib

from snavio.aws.ports import Objects
from snavio.aws.values import Outgoing
from snavio.wire.commands import Admitted, PayloadRef, delivered, encode


def target_message(
    command: Admitted,
    *,
    path: str,
    at_text: str,
    possible_duplicate: bool = False,
    payload_ref: PayloadRef | None = None,
) -> Outgoing:
    """The message for the target's queue."""
    attributes = {"snavio.id": command.id, "snavio.source": command.source, "snavio.command": command.name}
    if command.traceparent is not None:
        attributes["traceparent"] = command.traceparent
    message = delivered(
        command,
        path=path,
        dispatched_at=at_text,
        possible_duplicate=possible_duplicate,
        payload_ref=payload_ref,
    )
    return Outgoing(encode(message), attributes=attributes)


async def leave_payload(objects: Objects, bucket: str, command: Admitted) -> PayloadRef:
    """Put a payload where its target can fetch it. The same payload of the same command always lies at the same place."""
    payload = bytes(command.payload)
    digest = hashlib.sha256(payload).hexdigest()
    key = f"claims/{command.target}/{command.name}/{command.id.lower()}-{digest[:16]}.json"
    await objects.put(bucket, key, payload)
    return PayloadRef(bucket=bucket, key=key, bytes=len(payload), sha256=digest)
