"""Run fast: `python -m snavio.fast`."""

from __future__ import annotations

import sys

from snavio.fast.config import FastConfig
from snavio.fast.wiring import wire
from snavio.runtime.main import main

if __name__ == "__main__":
    sys.exit(main("fast", FastConfig, wire))
