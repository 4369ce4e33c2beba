"""Reading what AWS answers: nested, and full of fields that are left out."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError


def within(answer: Any, *path: str) -> Any:
    """The value at the end of a path of fields, or None where a field is absent or null."""
    for field in path:
        if answer is None:
            return None
        answer = answer.get(field)
    return answer


def code_of(error: ClientError) -> str:
    """The error code AWS gave."""
    return _error_field(error, "Code")


def message_of(error: ClientError) -> str:
    """The sentence AWS gave."""
    return _error_field(error, "Message") or str(error)


def _error_field(error: ClientError, field: str) -> str:
    response: Any = error.response  # pyright: ignore[reportUnknownMemberType]
    return within(response, "Error", field) or ""
