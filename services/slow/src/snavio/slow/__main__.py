"""Run slow: `python -m snavio.slow`."""

from __future__ import annotations

import sys

from snavio.runtime.main import main
from snavio.slow.config import SlowConfig
from snavio.slow.wiring import wire

if __name__ == "__main__":
    sys.exit(main("slow", SlowConfig, wire))
