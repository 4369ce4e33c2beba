"""The command that everything is measured with: of ordinary size, 800 bytes on the bus."""

from __future__ import annotations

import json
import uuid

from snavio.wire.canonical import canonical
from snavio.wire.signing import SigningKey, framed
from snavio.wire.times import format_time

NOW = 1_800_000_000.0
SOURCE, TARGET, NAME = "tenant-1/service-1", "target-1", "notify-user"
SECRET = b"k" * 32
PAYLOAD = {"user": 42, "text": "a message of ordinary length " * 8, "tags": ["a", "b", "c"], "n": 1.5}


def bus_event(*, as_the_bus_writes_it: bool = False) -> str:
    """A signed command in its envelope; its payload canonical, or serialised anew by the bus."""
    command_id, timestamp = str(uuid.uuid4()), format_time(NOW)
    signature = SigningKey(SECRET).sign(
        framed("hmac-v1", command_id, timestamp, TARGET, NAME), canonical(PAYLOAD)
    )
    detail = {
        "metadata": {
            "id": command_id,
            "timestamp": timestamp,
            "type": "snavio.command-sent",
            "version_id": "hmac-v1",
            "hmac": signature,
        },
        "command": {"target": TARGET, "name": NAME, "payload": "HERE"},
    }
    envelope = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "snavio.command-sent",
        "source": SOURCE,
        "account": "123456789012",
        "time": timestamp,
        "region": "us-east-1",
        "resources": [],
        "detail": detail,
    }
    payload = json.dumps(PAYLOAD) if as_the_bus_writes_it else canonical(PAYLOAD).decode()
    return json.dumps(envelope).replace('"HERE"', payload)
