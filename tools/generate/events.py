"""The page of telemetry events."""

from __future__ import annotations

from typing import Any

import msgspec
from docstrings import NOTICE, attribute_docs, one_line
from msgspec import inspect

from snavio.wire.events import FailedReason, InvalidReason, event_types

_EVERYWHERE = ("event_id", "tenant", "emitted_at", "schema_version")


def events_page() -> str:
    """Every event with its fields."""
    events = event_types().values()
    lines = [
        NOTICE,
        "",
        "# Telemetry events",
        "",
        "A tenant reads these from its queue `snavio-telemetry-<tenant>`, each the whole body of one message: flat JSON,",
        "with the type in `event`. A field marked *optional* is left out when it does not apply. The message attributes",
        "`event_type`, `tenant` and `source` allow filtering without parsing.",
        "",
        "Every event also has `event`, `event_id`, `tenant`, `emitted_at` and `schema_version`. An event reported twice, because a",
        "worker died between two steps, has the same `event_id` both times.",
        "",
        "| event | what it says |",
        "|---|---|",
        *(f"| [`{_tag(event)}`](#{_anchor(_tag(event))}) | {one_line(event.__doc__)} |" for event in events),
    ]
    for event in events:
        lines += ["", f"## `{_tag(event)}`", "", one_line(event.__doc__), "", *_fields(event)]
    lines += ["", "## Reasons a message is invalid", "", *_members(InvalidReason)]
    lines += ["", "## Reasons a command fails", "", *_members(FailedReason), ""]
    return "\n".join(lines)


def _tag(event: type[Any]) -> str:
    return str(event.__struct_config__.tag)


def _anchor(tag: str) -> str:
    return tag.replace(".", "")


def _fields(event: type[Any]) -> list[str]:
    docs = attribute_docs(event)
    rows = [
        f"| `{field.name}` | {_type(inspect.type_info(field.type))} | "
        f"{'always' if field.required or field.default is not msgspec.UNSET else 'optional'} | "
        f"{one_line(docs.get(field.name))} |"
        for field in msgspec.structs.fields(event)
        if field.name not in _EVERYWHERE
    ]
    return ["| field | type | present | meaning |", "|---|---|---|---|", *rows]


def _members(enum: Any) -> list[str]:
    return [f"- `{member.value}`" for member in enum]


def _type(info: inspect.Type) -> str:
    match info:
        case inspect.UnionType(types=kinds):
            return " or ".join(_type(kind) for kind in kinds)
        case inspect.StructType(fields=fields):
            return "{" + ", ".join(f"{field.encode_name}: {_type(field.type)}" for field in fields) + "}"
        case inspect.ListType(item_type=item):
            return f"list of {_type(item)}"
        case inspect.EnumType():
            return "reason"
        case _:
            plain = {"StrType": "string", "IntType": "integer", "FloatType": "number", "BoolType": "boolean"}
            return plain[type(info).__name__]
