"""What can go wrong for a tenant, under one root."""

from __future__ import annotations

from snavio.wire.events import InvalidReason


class SdkError(Exception):
    """The root of all errors the SDK raises on purpose."""


class InvalidCommandError(SdkError, ValueError):
    """The platform would refuse this command, so it was not sent. `reason` is the code the platform would give."""

    def __init__(self, reason: InvalidReason, detail: str) -> None:
        super().__init__(f"{detail} ({reason})")
        self.reason = reason


class ConfigError(SdkError):
    """The tenant's configuration cannot be had, or does not hold what is needed."""


class SendError(SdkError):
    """A command did not reach the bus. `code` is what the bus said, and `command_id` the id it was sent under.

    `uncertain` is True when the bus never answered: the command may have arrived all the same, so to send it again
    give `send` the same id.
    """

    def __init__(self, command_id: str, code: str, detail: str, *, uncertain: bool = False) -> None:
        super().__init__(f"Command {command_id} was not accepted by the bus: {detail} ({code})")
        self.command_id = command_id
        self.code = code
        self.uncertain = uncertain


class ThrottledError(SdkError):
    """The platform asked to hold this command back until `until` (seconds since the epoch)."""

    def __init__(self, target: str, name: str, until: float) -> None:
        super().__init__(f"{target} {name} is throttled: try again later")
        self.until = until


class ClosedError(SdkError):
    """The producer is closed, or was before this command could be sent."""


class RejectCommand(SdkError):  # noqa: N818 - raised by handlers as an instruction, not as an error
    """Raised by a handler: this command can never be handled. It goes to the dead-letter queue with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RetryCommand(SdkError):  # noqa: N818 - see RejectCommand
    """Raised by a handler: not now; deliver it again after so many seconds."""

    def __init__(self, seconds: float, reason: str = "the handler asked for another try") -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.reason = reason
