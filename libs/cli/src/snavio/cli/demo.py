"""`snavio demo`."""

from __future__ import annotations

from snavio.demo.command import demo

__all__ = ["demo"]
