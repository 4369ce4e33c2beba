"""The one canonical log line of a command: who asked what of whom, and what became of it."""

from __future__ import annotations

from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.wire.commands import Admitted


def log_command(log: Log, command: Admitted, outcome: str, reason: str = "") -> None:
    """Write the line, at `info` when the command failed and at `debug` when all is well.

    A line costs more than a whole decision, and telemetry tells the same.
    """
    level = "info" if outcome == "failed" else "debug"
    if log.enabled(level):
        write = log.info if level == "info" else log.debug
        write(
            LogEvent.COMMAND,
            command_id=command.id,
            source=command.source,
            target=command.target,
            command=command.name,
            outcome=outcome,
            reason=reason,
        )
