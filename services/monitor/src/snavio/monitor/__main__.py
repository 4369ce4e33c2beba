"""Run the monitor: `python -m snavio.monitor`."""

from __future__ import annotations

import sys

from snavio.monitor.config import MonitorConfig
from snavio.monitor.wiring import wire
from snavio.runtime.main import main

if __name__ == "__main__":
    sys.exit(main("monitor", MonitorConfig, wire))
