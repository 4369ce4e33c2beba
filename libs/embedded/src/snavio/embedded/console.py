"""The logs of many processes on one standard error, for people to read."""

from __future__ import annotations

import contextlib
from typing import Any, TextIO

import msgspec

_COLOURS = ("36", "32", "35", "34", "96", "92", "95", "94")
_LEVELS = {"debug": "2", "warning": "33", "error": "31", "critical": "31"}
_SHOWN_APART = ("timestamp", "level", "event", "service", "worker", "exception")
_WIDTH = 8


class Console:
    """Writes one line for each log line of a process, with who said it in front."""

    def __init__(self, out: TextIO, *, colour: bool | None = None) -> None:
        self._out = out
        self._colour = out.isatty() if colour is None else colour
        self._voices: dict[str, str] = {}

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        self._write("snavio", text)

    def relay(self, name: str, line: str) -> None:
        """A line a process wrote: JSON is laid out, anything else is passed on as it is."""
        self._write(name, self._laid_out(line) if line.startswith("{") else line)

    def _laid_out(self, line: str) -> str:
        try:
            fields: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            return line
        level = str(fields.get("level", ""))
        rest = " ".join(f"{key}={_shown(value)}" for key, value in fields.items() if key not in _SHOWN_APART)
        # 2026-11-18T06:30:00.123Z: the date is today's.
        clock = str(fields.get("timestamp", ""))[11:23]
        head = self._paint(f"{level:7} {fields.get('event', '')}", _LEVELS.get(level, ""))
        laid_out = f"{self._paint(clock, '2')} {head} {self._paint(rest, '2')}".rstrip()
        trace = str(fields.get("exception") or "")
        return "\n".join([laid_out, *(f"    {each}" for each in trace.splitlines())])

    def _write(self, name: str, text: str) -> None:
        colour = self._voices.setdefault(name, _COLOURS[len(self._voices) % len(_COLOURS)])
        voice = self._paint(f"{name:{_WIDTH}}", colour)
        # Nobody may be reading any more, and that is no reason to stop the platform.
        with contextlib.suppress(OSError):
            self._out.writelines(f"{voice} {line}\n" for line in text.splitlines() or [""])
            self._out.flush()

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code and text else text


def _shown(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()
