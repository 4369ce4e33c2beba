"""A child process that must not outlive its parent.

The parent gives the child a pipe as standard input and never writes to it. When the parent ends, however it ends, the
kernel closes the pipe, and the child reads the end of the file.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time


def hold(*, grace_seconds: float) -> None:
    """Stop this process when its standard input closes: SIGTERM, and SIGKILL when the grace has passed."""
    watcher = threading.Thread(
        target=_watch, args=(sys.stdin.fileno(), grace_seconds), name="lifeline", daemon=True
    )
    watcher.start()


def _watch(pipe: int, grace_seconds: float) -> None:
    while os.read(pipe, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_seconds)
    os.kill(os.getpid(), signal.SIGKILL)
