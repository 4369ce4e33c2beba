"""Run shield: `python -m snavio.shield`."""

from __future__ import annotations

import sys

from snavio.runtime.main import main
from snavio.shield.config import ShieldConfig
from snavio.shield.wiring import wire

if __name__ == "__main__":
    sys.exit(main("shield", ShieldConfig, wire))
