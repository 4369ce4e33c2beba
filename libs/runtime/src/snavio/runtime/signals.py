"""Where the request to stop comes from."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

import anyio

Signals: TypeAlias = Callable[[], AbstractContextManager[AsyncIterator[int]]]
"""Opens a stream of signal numbers. The first starts draining, the second aborts."""


def os_signals() -> AbstractContextManager[AsyncIterator[int]]:
    """SIGTERM and SIGINT of this process."""
    return anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT)
