"""JSON Schemas of payloads, compiled once."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec

from snavio.aws.errors import SnavioError
from snavio.domain.screening import Validator

_FAULT_CHARACTERS = 200


class SchemaError(SnavioError):
    """A schema that cannot be used."""


def compile_schema(schema: dict[str, Any] | bool) -> Validator:  # noqa: FBT001 - true and false are schemas
    """A check of payloads. Raises `SchemaError` when the schema is not one.

    A schema comes from a tenant: patterns run on an engine with linear time, and references lead nowhere outside.
    """
    try:
        validator = jsonschema_rs.validator_for(
            schema, pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse_reference
        )
    except Exception as problem:  # noqa: BLE001 - the library raises its own, ValueError and whatever the retriever does
        raise SchemaError(
            f"not a usable JSON Schema: {str(problem).splitlines()[0][:_FAULT_CHARACTERS]}"
        ) from None

    def check(payload: msgspec.Raw) -> str | None:
        try:
            value: Any = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return "command.payload holds a value that cannot be checked"
        if validator.is_valid(value):
            return None
        return _fault(next(iter(validator.iter_errors(value))))

    return check


def _fault(error: Any) -> str:
    # Say where and which rule, not what was found there: the value may be long or private.
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    rule = "/".join(str(part) for part in error.schema_path)
    return f"command.payload{path} does not satisfy {rule} of the schema"[:_FAULT_CHARACTERS]


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"a reference to {uri} leads outside the schema")
