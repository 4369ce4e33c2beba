"""A directory that holds the state of one running instance, and of one only."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from snavio.embedded.errors import CannotStart

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def claimed(path: Path) -> Generator[Path]:
    """Create the directory if needed and hold it against every other instance until the block ends.

    The claim is a file lock: it goes when the process goes, so a crash leaves nothing to clean up.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise CannotStart(f"The data directory {path} cannot be written: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotStart(f"The data directory {path} is in use by another running instance.") from error
        yield path.resolve()
    finally:
        os.close(lock)
