"""Reading a request so that every fault in it is named at once, not only the first."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import msgspec

from snavio.control.problems import Fault, raise_faults
from snavio.wire.names import is_command, is_name

T = TypeVar("T")

_NAMED = ("tenant", "service", "target")


def read(value: object, type_: type[T]) -> T:
    """The value as a Struct. Raises `Invalid` with every fault."""
    raise_faults(faults_in(value, type_))
    return msgspec.convert(value, type_)


def faults_in(value: object, type_: Any, pointer: str = "") -> list[Fault]:
    """Everything that keeps a decoded JSON value from being of the type."""
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        inner = _inner_faults(value, type_, pointer)
        return inner or [Fault("bad-value", _sentence(error), pointer)]
    return []


def name_faults(names: Mapping[str, str]) -> list[Fault]:
    """What is wrong with the names in a path; each is checked by what it names."""
    faults: list[Fault] = []
    for what, name in names.items():
        if what in _NAMED and not is_name(name):
            detail = f"The {what} must be 1 to 63 lower-case letters, digits and hyphens, not beginning with a hyphen."
            faults.append(Fault("bad-name", detail, f"/{what}"))
        if what == "command" and not is_command(name):
            detail = (
                "The command must be 1 to 127 lower-case letters, digits, dots, underscores and hyphens, "
                "beginning with a letter or digit."
            )
            faults.append(Fault("bad-name", detail, "/command"))
    return faults


def _inner_faults(value: object, type_: Any, pointer: str) -> list[Fault]:
    if isinstance(value, dict):
        struct = _part(type_, _is_struct)
        return _field_faults(cast("dict[str, object]", value), struct, pointer) if struct else []
    if isinstance(value, list):
        listed = _part(type_, _is_listing)
        if listed is not None:
            item = get_args(listed)[0]
            return [
                fault
                for index, each in enumerate(cast("list[object]", value))
                for fault in faults_in(each, item, f"{pointer}/{index}")
            ]
    return []


def _field_faults(value: dict[str, object], struct: type[msgspec.Struct], pointer: str) -> list[Fault]:
    faults: list[Fault] = []
    known: set[str] = set()
    for field in msgspec.structs.fields(struct):
        name = field.encode_name
        known.add(name)
        if name in value:
            faults += faults_in(value[name], field.type, f"{pointer}/{_escaped(name)}")
        elif field.required:
            faults.append(Fault("missing-field", f"{name} is required.", f"{pointer}/{_escaped(name)}"))
    if struct.__struct_config__.forbid_unknown_fields:
        faults += [
            Fault("unknown-field", f"There is no field {name} here.", f"{pointer}/{_escaped(name)}")
            for name in value
            if name not in known
        ]
    return faults


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def _is_listing(type_: Any) -> bool:
    return get_origin(type_) in {list, tuple, frozenset, set}


def _part(type_: Any, wanted: Callable[[Any], bool]) -> Any:
    """The first type in an annotation or union that is wanted."""
    if wanted(type_):
        return type_
    if hasattr(type_, "__metadata__") or get_origin(type_) in {Union, types.UnionType}:
        for part in get_args(type_):
            found = _part(part, wanted)
            if found is not None:
                return found
    return None


def _sentence(error: msgspec.ValidationError) -> str:
    text = str(error).partition(" - at ")[0].replace("`", "")
    return text if text.endswith(".") else f"{text}."


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
