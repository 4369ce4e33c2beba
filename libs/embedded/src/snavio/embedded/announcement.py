"""What a platform that is up says of itself, once on standard output and for as long as it runs in a file."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

CONNECTION = "connection.json"
"""In the data directory while the platform runs: its announcement, for commands run beside it."""


class Announcement(msgspec.Struct, frozen=True):
    """The one line on standard output, once everything is ready."""

    aws_endpoint_url: str
    http_url: str | None
    """None when the gateway does not run."""
    admin_token: str


def remember(data_dir: Path, announcement: Announcement) -> None:
    """Leave what was announced where the command line finds it; only its owner can read it."""
    forget(data_dir)
    with os.fdopen(os.open(data_dir / CONNECTION, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(announcement))


def forget(data_dir: Path) -> None:
    """The platform is down."""
    (data_dir / CONNECTION).unlink(missing_ok=True)


def running(data_dir: Path) -> Announcement | None:
    """What the platform of a data directory announced, while it is up."""
    try:
        return msgspec.json.decode((data_dir / CONNECTION).read_bytes(), type=Announcement)
    except (OSError, msgspec.MsgspecError):
        return None
