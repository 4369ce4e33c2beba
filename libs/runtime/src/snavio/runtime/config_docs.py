"""The reference table of a service's variables, for the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from snavio.runtime.config import Setting, settings_of

if TYPE_CHECKING:
    from snavio.runtime.common_config import CommonConfig


def document(config: type[CommonConfig], service: str) -> str:
    """A Markdown table: variable, type with its limits, default, what it is for."""
    rows = [_row(setting) for setting in settings_of(config, service)]
    return "\n".join(["| Variable | Type | Default | What |", "|---|---|---|---|", *rows]) + "\n"


def _row(setting: Setting) -> str:
    variables = ", ".join(f"`{variable}`" for variable in setting.variables)
    cells = (variables, _type(inspect.type_info(setting.type)), _default(setting), setting.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(setting: Setting) -> str:
    if setting.required:
        return "required"
    if setting.secret:
        return "secret"
    if setting.default is None:
        return "unset"
    value: Any = msgspec.to_builtins(setting.default)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata(type=inner):
            return _type(inner)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "integer" + _bounds(info)
        case inspect.FloatType():
            return "number" + _bounds(info)
        case inspect.StrType(pattern=str() as pattern):
            return f"text matching `{pattern}`"
        case inspect.LiteralType(values=values):
            return " or ".join(f"`{value}`" for value in values)
        case inspect.EnumType(cls=members):
            return " or ".join(f"`{member.value}`" for member in members)
        case inspect.CollectionType(item_type=item):
            return f"list of {_type(item)}, separated by commas"
        case inspect.UnionType(types=kinds):
            return " or ".join(_type(kind) for kind in kinds if not isinstance(kind, inspect.NoneType))
        case _:
            return "text"


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    limits = (("≥", info.ge), (">", info.gt), ("≤", info.le), ("<", info.lt))
    said = [f"{sign} {limit:g}" for sign, limit in limits if limit is not None]
    return f" ({', '.join(said)})" if said else ""
