"""Structured logs: one JSON object a line, on standard error, with the ids of the current trace.

Code is given a `Log` and calls `log.info(LogEvent.SNAPSHOT_LOADED, version=3)`. There is no global logger to configure.
Bodies and secrets are never logged; fields that could hold one are struck out by name, whoever passes them.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, cast

import msgspec
import structlog
from opentelemetry import trace

from snavio.runtime.log_events import LogEvent

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence

    from structlog.typing import EventDict, Processor

Field: TypeAlias = "str | int | float | bool | Sequence[str] | None"

STRUCK = "[struck out]"
FORBIDDEN = frozenset(
    {
        "authorization",
        "body",
        "credentials",
        "hmac",
        "password",
        "payload",
        "plaintext",
        "secret",
        "secret_b64",
        "token",
    }
)
"""Fields that are never written, whatever they hold."""

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Log:
    """Writes events of the enumerated vocabulary, with what was bound to it."""

    __slots__ = ("_level", "_logger")

    def __init__(self, logger: structlog.typing.BindableLogger, level: int) -> None:
        self._logger: Any = logger
        self._level = level

    def bind(self, **fields: Field) -> Log:
        """A log that adds these fields to each line."""
        return Log(self._logger.bind(**fields), self._level)

    def enabled(self, level: str) -> bool:
        """Whether a line of this level would be written; for lines that are costly to prepare."""
        return _LEVELS[level] >= self._level

    def debug(self, event: LogEvent, **fields: Field) -> None:
        """A detail for whoever is looking for a fault."""
        if self._level <= logging.DEBUG:
            self._logger.debug(event.value, **fields)

    def info(self, event: LogEvent, **fields: Field) -> None:
        """Something that happened as it should."""
        if self._level <= logging.INFO:
            self._logger.info(event.value, **fields)

    def warning(self, event: LogEvent, *, error: BaseException | None = None, **fields: Field) -> None:
        """Something that went wrong and was dealt with; of the error, its class and message."""
        if self._level <= logging.WARNING:
            self._logger.warning(event.value, **_described(error), **fields)

    def error(self, event: LogEvent, *, error: BaseException | None = None, **fields: Field) -> None:
        """Something that went wrong and needs a person; of the error, also where it was raised."""
        self._logger.error(event.value, exc_info=error, **_described(error), **fields)


def open_log(
    *,
    service: str,
    worker_id: str,
    level: str = "info",
    log_format: str = "json",
    stream: TextIO | None = None,
    now: Callable[[], float] = time.time,
) -> Log:
    """A log to `stream`, standard error unless given."""
    out = stream or sys.stderr
    render: Processor = (
        structlog.dev.ConsoleRenderer(colors=out.isatty())
        if log_format == "console"
        else cast("Processor", _render_json)
    )
    processors = [*_shared(now), render]
    logger = structlog.wrap_logger(
        structlog.PrintLogger(out),
        processors=processors,
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return Log(logger.bind(service=service, worker=worker_id), _LEVELS[level])


def recording_log(lines: list[dict[str, Any]], *, level: str = "debug") -> Log:
    """A log for tests that appends each line's fields to a list."""

    def keep(_logger: object, _method: str, event: EventDict) -> EventDict:
        lines.append(dict(event))
        raise structlog.DropEvent

    processors = [_strike, structlog.processors.add_log_level, keep]
    logger = structlog.wrap_logger(None, processors=processors, wrapper_class=structlog.BoundLogger)
    return Log(logger.bind(), _LEVELS[level])


def adopt_libraries(log: Log, *, level: str = "warning") -> None:
    """Let what third-party libraries log through the standard library come out as our lines."""
    logging.basicConfig(handlers=[_Adopter(log)], level=_LEVELS[level], force=True)
    logging.captureWarnings(True)


class _Adopter(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        write(LogEvent.LIBRARY, error=error, logger=record.name, message=record.getMessage())


def _shared(now: Callable[[], float]) -> list[Processor]:
    def stamp(_logger: object, _method: str, event: EventDict) -> EventDict:
        seconds = now()
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        event["timestamp"] = f"{whole}.{int(seconds * 1000) % 1000:03d}Z"
        return event

    return [
        stamp,
        structlog.processors.add_log_level,
        _add_trace,
        _strike,
        structlog.processors.format_exc_info,
    ]


def _add_trace(_logger: object, _method: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def _strike(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in FORBIDDEN & event.keys():
        event[name] = STRUCK
    return event


def _render_json(_logger: object, _method: str, event: EventDict) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


def _described(error: BaseException | None) -> dict[str, Field]:
    if error is None:
        return {}
    return {"error": str(error) or type(error).__name__, "error_type": type(error).__name__}
