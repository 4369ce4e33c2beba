"""Puts events on the bus under the sources they had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from snavio.aws.boto.faults import translated
from snavio.replay.resigning import Emission
from snavio.wire.commands import COMMAND_SENT

_MAX_ENTRIES = 10
_MAX_BYTES = 900_000
"""EventBridge takes less than a megabyte a call, names and all."""


class Emitter(Protocol):
    """The bus."""

    async def emit(self, emissions: Sequence[Emission]) -> list[str | None]:
        """One answer for each, in order: None for emitted, or why not."""
        ...


class BusEmitter:
    """`Emitter` on EventBridge. `client` opens raw aiobotocore clients by service."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], bus: str) -> None:
        self._client = client
        self._bus = bus

    async def emit(self, emissions: Sequence[Emission]) -> list[str | None]:
        """One answer for each, in order: None for emitted, or why not."""
        events = await self._client("events")
        answers: list[str | None] = []
        for lot in _lots(emissions):
            with translated("PutEvents"):
                answer = await events.put_events(Entries=[self._entry(one) for one in lot])
            answers += [
                f"{entry['ErrorCode']}: {entry.get('ErrorMessage', '')}" if entry.get("ErrorCode") else None
                for entry in answer["Entries"]
            ]
        return answers

    def _entry(self, emission: Emission) -> dict[str, str]:
        return {
            "EventBusName": self._bus,
            "Source": emission.source,
            "DetailType": COMMAND_SENT,
            "Detail": emission.detail,
        }


def _lots(emissions: Sequence[Emission]) -> list[list[Emission]]:
    lots: list[list[Emission]] = []
    size = 0
    for emission in emissions:
        length = len(emission.detail.encode())
        if not lots or len(lots[-1]) == _MAX_ENTRIES or size + length > _MAX_BYTES:
            lots.append([])
            size = 0
        lots[-1].append(emission)
        size += length
    return lots
