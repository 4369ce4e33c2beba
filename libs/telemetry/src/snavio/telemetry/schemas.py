"""JSON Schemas of everything people outside the platform read or write, from the types the platform itself uses."""

from __future__ import annotations

import ast
import inspect
import itertools
from typing import Any, cast, get_args

import msgspec

from snavio.telemetry.alerts import Alert
from snavio.wire.commands import COMMAND_SENT, CommandSent, Delivered
from snavio.wire.events import event_types
from snavio.wire.names import COMMAND_PATTERN, NAME_PATTERN

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/{name}"

_NAME = {"pattern": f"^{NAME_PATTERN}$"}
_COMMAND = {"pattern": f"^{COMMAND_PATTERN}$"}
_TIME = {"format": "date-time", "description": "RFC 3339, with an offset."}
# What the types leave to the checks that follow decoding, because each fault has a reason code of its own.
_RULES: dict[str, dict[str, Any]] = {
    "Metadata": {
        "id": {"format": "uuid"},
        "timestamp": _TIME,
        "type": {"const": COMMAND_SENT},
        "hmac": {"pattern": "^[0-9a-f]{64}$"},
        "version_id": {"minLength": 1},
    },
    "CommandBody": {"target": _NAME, "name": _COMMAND},
    "DeliveredMetadata": {"id": {"format": "uuid"}, "timestamp": _TIME, "dispatched_at": _TIME},
    "DeliveredBody": {"target": _NAME, "name": _COMMAND},
}
_ANYTHING = {"description": "Any JSON."}


def components(ref: str = REF) -> dict[str, Any]:
    """Every schema by the name of its type; `ref` is how one refers to another."""
    kinds = [CommandSent, Delivered, Alert, *event_types().values()]
    _, found = msgspec.json.schema_components(kinds, ref_template=ref)
    for kind in _reached(kinds):
        schema = found.get(kind.__name__)
        if schema is None:
            continue
        for name, text in attribute_docs(kind).items():
            if name in schema["properties"]:
                schema["properties"][name]["description"] = text
        for name, rule in _RULES.get(kind.__name__, {}).items():
            schema["properties"][name] |= rule
    # The platform fills the source in; a producer that names one is refused.
    found["CommandBody"]["properties"]["source"] = False
    for name in ("CommandBody", "DeliveredBody"):
        found[name]["properties"]["payload"] = _ANYTHING
    found["Alert"]["properties"]["sample"] = {"type": "object", "description": "One of the events told."}
    return dict(sorted(found.items()))


def document(title: str, *roots: type[msgspec.Struct]) -> dict[str, Any]:
    """A schema document: one of the roots, with everything they refer to."""
    every = components()
    needed: dict[str, Any] = {}
    waiting = [root.__name__ for root in roots]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = every[name]
            waiting += _references(every[name])
    refs = [{"$ref": REF.format(name=root.__name__)} for root in roots]
    shape: dict[str, Any] = refs[0] if len(refs) == 1 else {"oneOf": refs}
    return {"$schema": DIALECT, "title": title, **shape, "$defs": dict(sorted(needed.items()))}


def documents() -> dict[str, dict[str, Any]]:
    """Every schema document by the name of its file."""
    return {
        "command-sent.json": document("The detail of a command event on the bus", CommandSent),
        "command-delivered.json": document("The message a target receives", Delivered),
        "telemetry-event.json": document("A message of a tenant's telemetry queue", *event_types().values()),
        "alert.json": document("The body of an alert, by mail or webhook", Alert),
    }


def attribute_docs(owner: type[Any]) -> dict[str, str]:
    """Attribute to the docstring below it, which exists only in the source; of what is inherited too."""
    found: dict[str, str] = {}
    for cls in reversed(owner.__mro__):
        if cls.__module__.startswith("snavio."):
            body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body[0]
            statements = body.body if isinstance(body, ast.ClassDef) else []
            for statement, below in itertools.pairwise(statements):
                match statement, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        found[name] = " ".join(text.split())
                    case _:
                        pass
    return found


def _reached(kinds: list[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """The kinds, and the Structs their fields hold."""
    found: dict[type[msgspec.Struct], None] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        found[kind] = None
        for field in msgspec.structs.fields(kind):
            parts = (field.type, *get_args(field.type))
            waiting += [part for part in parts if isinstance(part, type) and issubclass(part, msgspec.Struct)]
    return list(found)


def _references(schema: Any) -> list[str]:
    match schema:
        case {"$ref": str(ref)}:
            return [ref.rpartition("/")[2]]
        case dict():
            parts = list(cast("dict[str, Any]", schema).values())
        case list():
            parts = cast("list[Any]", schema)
        case _:
            parts = []
    return [name for part in parts for name in _references(part)]
