"""When a failed call is made again: what was refused always, what may have acted only if repeating it is harmless."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from snavio.aws.errors import Refused, Transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from snavio.aws.call import Call

T = TypeVar("T")

ATTEMPTS = 3
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0

_REPEATABLE = frozenset(
    {
        "BatchWriteItem",
        "ChangeMessageVisibilityBatch",
        "Decrypt",
        "DeleteMessageBatch",
        "GenerateDataKey",
        "GetItem",
        "Query",
        "Scan",
    }
)


def is_repeatable(operation: str, parameters: Mapping[str, Any]) -> bool:
    """Whether doing it twice is the same as doing it once.

    An update may add, a conditional write would meet its own first attempt, and a send would send again: whether to
    repeat those after an unknown outcome is the caller's to decide.
    """
    if operation in _REPEATABLE:
        return True
    if operation in {"PutItem", "DeleteItem"}:
        return "ConditionExpression" not in parameters
    return operation == "TransactWriteItems" and "ClientRequestToken" in parameters


def pause_before(attempt: int, jitter: float) -> float:
    """Seconds before the second (1), third (2) … attempt: exponential with full jitter, `jitter` in 0..1."""
    return jitter * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))


async def retried(
    act: Callable[[], Awaitable[T]],
    *,
    repeatable: bool,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Act at most three times, pausing between."""
    attempt = 1
    while True:
        try:
            return await act()
        except Transient as fault:
            if attempt == ATTEMPTS or not (repeatable or isinstance(fault, Refused)):
                raise
        await sleep(pause_before(attempt, jitter()))
        attempt += 1


class Retrying:
    """A `Call` that is made again when that may help and cannot harm."""

    def __init__(self, call: Call, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        self._call = call
        self._sleep = sleep

    async def __call__(self, operation: str, parameters: Mapping[str, Any], answer: type[T], /) -> T:
        """Carry the operation, at most three times."""
        return await retried(
            lambda: self._call(operation, parameters, answer),
            repeatable=is_repeatable(operation, parameters),
            sleep=self._sleep,
        )
