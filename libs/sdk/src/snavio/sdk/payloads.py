"""From the payload of a command to what a handler asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

Decode: TypeAlias = Callable[[bytes], Any]


class PayloadError(Exception):
    """The payload is not what the handler takes."""


def decoder_of(wanted: Any) -> Decode:
    """A decoder for a type: anything msgspec knows (structs, dataclasses, typed dicts), or a pydantic model."""
    validate: Callable[[bytes], Any] | None = getattr(wanted, "model_validate_json", None)
    if validate is not None:
        return _checked(validate)
    try:
        return _checked(msgspec.json.Decoder(wanted).decode)
    except TypeError as problem:
        raise TypeError(f"A handler cannot take {wanted!r}: {problem}") from None


def _checked(decode: Callable[[bytes], Any]) -> Decode:
    def checked(payload: bytes) -> Any:
        try:
            return decode(payload)
        except (ValueError, RecursionError) as problem:
            # msgspec's and pydantic's errors are ValueErrors; only the first line, the rest may repeat the payload.
            raise PayloadError(
                str(problem).splitlines()[0] if str(problem) else "it cannot be read"
            ) from None

    return checked
