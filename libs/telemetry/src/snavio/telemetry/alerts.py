"""The alert itself: what every channel is given. Pure."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import msgspec

from snavio.wire.events import derived_id
from snavio.wire.times import format_time

if TYPE_CHECKING:
    from snavio.telemetry.bursts import Burst

MAX_SUBJECT = 100
SIGNATURE_HEADER = "X-Snavio-Signature"
TIMESTAMP_HEADER = "X-Snavio-Timestamp"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One notification of a burst."""

    alert_id: str
    tenant: str
    event_type: str
    target: str
    count: int
    """Events this notification tells of."""
    total: int
    """Events since the burst began."""
    notice: int
    """1 for the first notification of a burst."""
    first_at: str
    last_at: str
    raised_at: str
    summary: str
    sample: msgspec.Raw
    """One of the events."""
    schema_version: str = "1.0"


def alert_of(burst: Burst, count: int, now: float) -> Alert:
    """The notification of a burst that is due. The same burst at the same stage always has the same id."""
    key = burst.key
    notice = burst.notices + 1
    return Alert(
        alert_id=derived_id(
            "alert", key.tenant, key.event_type, key.target, str(int(burst.first_at * 1000)), str(notice)
        ),
        tenant=key.tenant,
        event_type=key.event_type,
        target=key.target,
        count=count,
        total=burst.count,
        notice=notice,
        first_at=format_time(burst.first_at),
        last_at=format_time(burst.last_at),
        raised_at=format_time(now),
        summary=_summary(burst, count),
        sample=msgspec.Raw(burst.sample.encode()),
    )


def subject(alert: Alert) -> str:
    """The subject of a mail: one line, short enough for any client."""
    text = f"[Snavio] {alert.tenant}: {alert.summary}"
    return text if len(text) <= MAX_SUBJECT else text[: MAX_SUBJECT - 1] + "…"


def body(alert: Alert) -> bytes:
    """The JSON that mails and webhooks carry."""
    return msgspec.json.encode(alert)


def signature(secret: bytes, timestamp: str, content: bytes) -> str:
    """What the signature header says: HMAC-SHA256 over `<timestamp>.<body>`, in lower-case hex, after its version."""
    return "v1=" + hmac.new(secret, timestamp.encode() + b"." + content, hashlib.sha256).hexdigest()


def _summary(burst: Burst, count: int) -> str:
    about = f" about {burst.key.target}" if burst.key.target != "*" else ""
    again = " more" if burst.notices else ""
    return f"{burst.key.event_type}{about}, {count}{again}"
