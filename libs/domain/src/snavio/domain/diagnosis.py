"""Diagnosis: what is wrong with a message that could not be decoded. Slow and careful: only the broken come here."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from snavio.wire.events import InvalidReason


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a refused message said of itself, as far as it could be read."""

    source: str | None = None
    command_id: str | None = None
    target: str | None = None
    name: str | None = None
    timestamp: str | None = None


class Diagnosis(msgspec.Struct, frozen=True):
    """The fault, and what the message said of itself; no facts when it is not even a bus event."""

    reason: InvalidReason
    detail: str
    facts: Facts | None = None


_FACT_CHARACTERS = 256


def clipped(source: Any, command_id: Any, target: Any, name: Any, timestamp: Any) -> Facts:
    """Facts from hostile hands: only strings that can be told, and no longer than a sane one could be."""
    fields = (source, command_id, target, name, timestamp)
    return Facts(
        *(_tellable(field[:_FACT_CHARACTERS]) if isinstance(field, str) else None for field in fields)
    )


def _tellable(text: str) -> str:
    """A lone surrogate, which no UTF-8 can carry, becomes a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def diagnose(body: str) -> Diagnosis:
    """The first fault of a message that could not be decoded."""
    try:
        event = json.loads(body, parse_int=_any_integer, parse_constant=_refuse)
    except (ValueError, RecursionError) as problem:
        detail = "nested too deeply" if isinstance(problem, RecursionError) else "the event is not JSON"
        return Diagnosis(InvalidReason.MALFORMED_JSON, detail)
    if not isinstance(event, dict):
        return Diagnosis(InvalidReason.WRONG_TYPE, "the event is not an object")
    envelope = cast("dict[str, Any]", event)
    source = envelope.get("source")
    if not isinstance(source, str):
        return Diagnosis(InvalidReason.MISSING_FIELD, "the event has no source")
    detail = envelope.get("detail")
    found = _diagnose_detail(detail)
    if found is None:
        # Everything is in its place, so the text itself is at fault: a lone surrogate, for one.
        found = (InvalidReason.MALFORMED_JSON, "the event is not JSON as RFC 8259 has it")
    metadata, command = _part(detail, "metadata"), _part(detail, "command")
    facts = clipped(
        source, metadata.get("id"), command.get("target"), command.get("name"), metadata.get("timestamp")
    )
    return Diagnosis(*found, facts)


_REQUIRED = (
    ("metadata", ("id", "timestamp", "type", "version_id", "hmac")),
    ("command", ("target", "name", "payload")),
)
_OPTIONAL_STRINGS = (
    "correlation_id",
    "schema_version",
    "traceparent",
    "tracestate",
    "replay_id",
    "replay_reason",
)


def _diagnose_detail(detail: Any) -> tuple[InvalidReason, str] | None:
    if not isinstance(detail, dict):
        return InvalidReason.WRONG_TYPE, "detail is not an object"
    for part in ("metadata", "command"):
        if part not in detail:
            return InvalidReason.MISSING_FIELD, f"detail.{part} is missing"
        if not isinstance(detail[part], dict):
            return InvalidReason.WRONG_TYPE, f"detail.{part} is not an object"
    if "source" in _part(detail, "command"):
        return (
            InvalidReason.SOURCE_IN_PAYLOAD,
            "command.source is filled in by the platform and must not be sent",
        )
    for part, fields in _REQUIRED:
        found = _diagnose_fields(part, _part(detail, part), fields)
        if found is not None:
            return found
    metadata = _part(detail, "metadata")
    for field in _OPTIONAL_STRINGS:
        if not isinstance(metadata.get(field), str | None):
            return InvalidReason.WRONG_TYPE, f"metadata.{field} is not a string"
    if not isinstance(metadata.get("replayed", False), bool):
        return InvalidReason.WRONG_TYPE, "metadata.replayed is not a boolean"
    return None


def _diagnose_fields(
    part: str, found: dict[str, Any], fields: tuple[str, ...]
) -> tuple[InvalidReason, str] | None:
    for field in fields:
        if field not in found:
            reason = InvalidReason.HMAC_MISSING if field == "hmac" else InvalidReason.MISSING_FIELD
            return reason, f"{part}.{field} is missing"
        if field != "payload" and not isinstance(found[field], str):
            return InvalidReason.WRONG_TYPE, f"{part}.{field} is not a string"
    return None


def _part(detail: Any, name: str) -> dict[str, Any]:
    part: Any = cast("dict[str, Any]", detail).get(name) if isinstance(detail, dict) else None
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}


def _any_integer(text: str) -> int:
    return (
        0 if len(text) > 1 else int(text)
    )  # the value does not matter here, and the longest cannot be parsed


def _refuse(name: str) -> Any:
    raise ValueError(name)
