"""What a handler says became of each message: a value the worker loop performs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from snavio.aws.values import Received


class Done(msgspec.Struct, frozen=True, tag=True):
    """Its effects are durable: delete it."""


class Retry(msgspec.Struct, frozen=True, tag=True):
    """Not now: leave it to return, after a backoff by its receive count unless `after_seconds` is given."""

    reason: str
    after_seconds: float | None = None


class Dead(msgspec.Struct, frozen=True, tag=True):
    """It can never succeed: move it to the dead-letter queue now, with the reason."""

    reason: str


Outcome: TypeAlias = Done | Retry | Dead
Handler: TypeAlias = Callable[[Sequence[Received]], Awaitable[Sequence[Outcome]]]
"""Given up to ten messages, one outcome for each, in order. Raising means `Retry` for all of them."""
