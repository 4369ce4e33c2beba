"""What people type: sources, limits, times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from snavio.wire.events import event_types
from snavio.wire.names import is_source

_PREFIX = "snavio."
_EVENTS = list(event_types())
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class SourceType(click.ParamType[str]):
    """`tenant/service`."""

    name = "tenant/service"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The source, as it was typed."""
        if not is_source(str(value)):
            self.fail(f"{value!r} is not a source: write it as tenant/service.", param, ctx)
        return str(value)


class DurationType(click.ParamType[timedelta]):
    """`90s`, `15m`, `2h` or `7d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The time it says."""
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d{1,9})([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration: write 90s, 15m, 2h or 7d.", param, ctx)
        return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


class LimitType(click.ParamType[dict[str, int]]):
    """`50/s`, `600/m` or `50/10s`."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        """The limit as the API takes it."""
        if isinstance(value, dict):
            return value  # pyright: ignore[reportUnknownVariableType]
        found = re.fullmatch(r"(\d{1,10})/(\d{1,6})?([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is not a limit: write 50/s, 600/m or 50/10s.", param, ctx)
        return {"limit": int(found[1]), "interval_seconds": int(found[2] or 1) * _UNITS[found[3]]}


class EventType(click.ParamType[str]):
    """`command.delivered`, with `snavio.` in front or without."""

    name = "event"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The whole name of the event."""
        whole = f"{_PREFIX}{str(value).removeprefix(_PREFIX)}"
        if whole not in _EVENTS:
            known = ", ".join(event.removeprefix(_PREFIX) for event in _EVENTS)
            self.fail(f"{value!r} is no event; there are {known}.", param, ctx)
        return whole


EVENT = EventType()
SOURCE = SourceType()
DURATION = DurationType()
LIMIT = LimitType()


def moment(duration: timedelta | None) -> str | None:
    """So long from now, as the API takes it."""
    if duration is None:
        return None
    return (datetime.now(UTC) + duration).isoformat(timespec="seconds")
