"""A command on its way out: checked as the platform will check it, canonical once, signed at each attempt.

The signature carries the time, so it is made when the command leaves and made again when it leaves again: a command
that had to wait or be repeated is never too old, and always bears the key of the moment.
"""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID, uuid4

import msgspec

from snavio.sdk.errors import InvalidCommandError
from snavio.sdk.tenant_config import Signer
from snavio.wire.canonical import NotCanonicalisableError, canonical
from snavio.wire.commands import COMMAND_SENT
from snavio.wire.events import InvalidReason
from snavio.wire.names import is_command, is_name
from snavio.wire.signing import framed

MAX_ENTRY_BYTES = 1_000_000
"""The largest entry: under the bus's 1 MB and under what the platform carries with its envelope around it."""
_ENVELOPE_BYTES = 320
"""What stands around the payload besides the names and the optional metadata, at the most."""

_is_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_long_number = re.compile(rb"[0-9]{16}").search
_ordered = msgspec.json.Encoder(order="deterministic").encode
_shape = bytes.maketrans(b"123456789E", b"000000000e")
_whole = re.compile(rb"\.0(?![0-9])").search
_astral = re.compile(rb"[\xf0-\xf4]").search


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """A checked command, not yet signed."""

    id: str
    target: str
    name: str
    payload: str
    """Canonical JSON."""
    extra: str
    """The optional metadata as JSON, each field with a comma before it."""
    size: int
    """The bytes it will take of a request, at the most."""


def prepare(
    target: str,
    name: str,
    payload: Any,
    *,
    command_id: str | UUID | None = None,
    correlation_id: str | None = None,
    schema_version: str | None = None,
    traceparent: str | None = None,
    tracestate: str | None = None,
) -> Outgoing:
    """Check a command. Raises `InvalidCommandError` with the reason the platform would refuse it for."""
    if not is_name(target):
        raise InvalidCommandError(
            InvalidReason.BAD_FIELD, f"{target!r} is not the name of a target: use a-z, 0-9 and -, at most 63"
        )
    if not is_command(name):
        raise InvalidCommandError(
            InvalidReason.BAD_FIELD,
            f"{name!r} is not the name of a command: use a-z, 0-9, '.', '_' and -, at most 127",
        )
    identity = str(uuid4() if command_id is None else command_id)
    if command_id is not None and not _is_uuid(identity):
        raise InvalidCommandError(InvalidReason.BAD_FIELD, f"The command id {identity!r} is not a UUID")
    encoded = _canonical(payload)
    extra = _optional(
        correlation_id=correlation_id,
        schema_version=schema_version,
        traceparent=traceparent,
        tracestate=tracestate,
    )
    size = len(encoded) + len(extra.encode()) + len(target) + len(name) + _ENVELOPE_BYTES
    if size > MAX_ENTRY_BYTES:
        raise InvalidCommandError(
            InvalidReason.TOO_LARGE,
            f"The payload has {len(encoded)} bytes; a command may have {MAX_ENTRY_BYTES} in all",
        )
    return Outgoing(identity, target, name, encoded.decode(), extra, size)


def detail(command: Outgoing, signer: Signer, timestamp: str) -> str:
    """The `Detail` of the command's event, signed."""
    frame = framed(signer.version_id, command.id, timestamp, command.target, command.name)
    signature = signer.key.sign(frame, command.payload.encode())
    # Names, ids and times have been checked and need no escaping; a version id is the platform's.
    text = (
        f'{{"metadata":{{"id":"{command.id}","timestamp":"{timestamp}","type":"{COMMAND_SENT}",'
        f'"version_id":{signer.version_json},"hmac":"{signature}"{command.extra}}},'
        f'"command":{{"target":"{command.target}","name":"{command.name}","payload":{command.payload}}}}}'
    )
    if "\ufffe" in text or "\uffff" in text:
        # SQS refuses these two, which the canonical form leaves bare; escaped they mean the same.
        text = text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    return text


def _canonical(payload: Any) -> bytes:
    try:
        value = _builtins(payload)
        encoded = quick_canonical(value)
        if encoded is not None:
            return encoded
        encoded = canonical(value)
    except NotCanonicalisableError as problem:
        raise InvalidCommandError(
            InvalidReason.BAD_FIELD, f"The payload has no JSON form: {problem}"
        ) from None
    except (TypeError, ValueError) as problem:
        raise InvalidCommandError(InvalidReason.WRONG_TYPE, f"The payload is not JSON: {problem}") from None
    except RecursionError:
        raise InvalidCommandError(InvalidReason.BAD_FIELD, "The payload is nested too deeply") from None
    if _long_number(encoded):
        _refuse_inexact(value)
    return encoded


def quick_canonical(value: Any) -> bytes | None:
    """The canonical form at the speed of C, where a look at the result shows that it must be it; None elsewhere.

    msgspec's ordered JSON differs from RFC 8785 in how it writes some numbers, in what it makes of NaN (`null`), and
    in the order of names beyond the basic plane. Anything that looks like one of these, even inside a string, is left
    to the slow way.
    """
    try:
        encoded = _ordered(value)
    except (UnicodeEncodeError, OverflowError):
        return None
    return None if _doubtful(encoded) else encoded


def _doubtful(encoded: bytes) -> bool:
    # Searches for fixed bytes cost next to nothing; one expression with all of it costs more than everything else.
    shape = encoded.translate(_shape)
    return (
        b"0e" in shape
        or b"0000000000000000" in shape
        or b"0.00000" in encoded
        or b"null" in encoded
        or _whole(encoded) is not None
        or (not encoded.isascii() and _astral(encoded) is not None)
    )


def _builtins(payload: Any) -> Any:
    dump = getattr(payload, "model_dump", None)
    if dump is not None and not isinstance(payload, type):
        return dump(mode="json")
    # Structs, dataclasses, times and UUIDs become JSON, and names that are numbers strings; the rest stays as it is.
    return msgspec.to_builtins(payload, str_keys=True)


def _refuse_inexact(value: Any) -> None:
    """JSON numbers are doubles to the platform and to targets: an integer that is not one would arrive changed."""
    if isinstance(value, int):
        if not _survives(value):
            raise InvalidCommandError(
                InvalidReason.BAD_FIELD, f"The integer {value} cannot travel exactly: send it as a string"
            )
    elif isinstance(value, dict):
        for part in value.values():  # pyright: ignore[reportUnknownVariableType]
            _refuse_inexact(part)
    elif isinstance(value, (list, tuple)):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            _refuse_inexact(part)


def _survives(value: int) -> bool:
    # As canonical JSON writes it: a double may have the integer's value and still be spelled with other digits.
    return -(2**53) <= value <= 2**53 or canonical(value) == str(value).encode()


def _optional(**fields: str | None) -> str:
    parts: list[str] = []
    for field, value in fields.items():
        if value is None:
            continue
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
            raise InvalidCommandError(InvalidReason.WRONG_TYPE, f"{field} is not a string")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidCommandError(InvalidReason.BAD_FIELD, f"{field} holds a lone surrogate") from None
        parts.append(f',"{field}":{json.dumps(value, ensure_ascii=False)}')
    return "".join(parts)
