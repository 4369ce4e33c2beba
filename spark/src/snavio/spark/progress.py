"""What the jobs say while they work, to whoever started them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Takes a few words of what is being done."""


def silent(_: str) -> None:
    """Say nothing."""
