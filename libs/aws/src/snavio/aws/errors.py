"""What can go wrong at the edge of AWS, translated once by the adapters.

Callers decide by class: a `Transient` may be tried again, a `Permanent` will fail the same way next time, and a
`ConditionFailed` is an answer, not a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snavio.aws.values import Item


class SnavioError(Exception):
    """Root of every error Snavio raises on purpose."""


class Transient(SnavioError):  # noqa: N818 - reads as the property callers branch on
    """Throttled, timed out or unavailable: the same call may succeed later. It may also have acted."""


class Refused(Transient):
    """Throttled, in conflict or never reached: the same call may succeed later, and this one has not acted."""


class Permanent(SnavioError):  # noqa: N818
    """The same call will fail again: access denied, malformed, gone."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class NotFound(Permanent):
    """The queue, table, key or object named does not exist."""


class ConditionFailed(SnavioError):  # noqa: N818
    """A conditional write found another state; `old` is what it found, where the store tells.

    In a transaction `index` is the place of the first write whose condition did not hold.
    """

    def __init__(self, message: str, *, old: Item | None = None, index: int | None = None) -> None:
        super().__init__(message)
        self.old = old
        self.index = index
