"""Ctrl-C while Spark works: an end, not an error."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def opening() -> Generator[None]:
    """Hold Ctrl-C back while a session is opened; from then on it raises `KeyboardInterrupt`, and no more.

    Interrupted while it starts, Spark's process would stay behind. And once it has started, Spark's own handler asks it to
    cancel over the very connection that was interrupted, and fails at that.
    """
    logging.getLogger().addFilter(_is_no_interrupt)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Whether a log record is anything but Ctrl-C, which the bridge to Spark logs with its traceback."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)
