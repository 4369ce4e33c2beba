"""Run the outbox worker: `python -m snavio.outbox`."""

from __future__ import annotations

import sys

from snavio.outbox.config import OutboxConfig
from snavio.outbox.wiring import wire
from snavio.runtime.main import main

if __name__ == "__main__":
    sys.exit(main("outbox", OutboxConfig, wire))
