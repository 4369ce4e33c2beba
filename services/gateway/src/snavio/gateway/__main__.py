"""Run the gateway: `python -m snavio.gateway`."""

from __future__ import annotations

import sys

from snavio.gateway.config import GatewayConfig
from snavio.gateway.wiring import wire
from snavio.runtime.main import main

if __name__ == "__main__":
    sys.exit(main("gateway", GatewayConfig, wire))
