"""What can go wrong in a worker beyond what AWS answers."""

from __future__ import annotations

from snavio.aws.errors import SnavioError


class InvariantBroken(SnavioError):  # noqa: N818 - reads as the property callers branch on
    """The code is wrong, not the world: going on could lose or repeat messages, so the process ends."""


class ConfigError(SnavioError):
    """Settings are wrong. The message names every one of them and never shows a secret."""

    def __init__(self, service: str, problems: list[str]) -> None:
        self.service = service
        self.problems = tuple(problems)
        count = "1 setting is" if len(problems) == 1 else f"{len(problems)} settings are"
        super().__init__("\n  ".join([f"{service} cannot start: {count} wrong", *problems]))


class TaskFailed(SnavioError):  # noqa: N818
    """A background task raised, or returned though it should have run until the worker drained."""

    def __init__(self, task: str, reason: str) -> None:
        self.task = task
        self.reason = reason
        super().__init__(f"background task {task!r} {reason}")
