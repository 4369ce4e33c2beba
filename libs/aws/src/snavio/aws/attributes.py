"""Python values as DynamoDB attributes, and back.

Ints stay ints. A float without a fraction comes back as an int, which equals it: DynamoDB knows only numbers. Bytes
come back as bytes whether the attribute was read by botocore (bytes) or straight from JSON (base64 text).
"""

from __future__ import annotations

import binascii
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from snavio.aws.errors import Permanent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from snavio.aws.values import Item, Value

Attribute: TypeAlias = dict[str, Any]
"""One typed value as DynamoDB's JSON has it, such as `{"S": "text"}`."""

# DynamoDB keeps 38 significant digits between these magnitudes.
_MAX_INT = 10**38
_MIN_MAGNITUDE = 1e-130
_MAX_MAGNITUDE = 9.99e125
# Up to here every whole float is the int it prints as.
_EXACT_FLOAT = 2.0**53
_MAX_DIGITS = 39


def encode_item(item: Mapping[str, Value]) -> dict[str, Attribute]:
    """An item as DynamoDB's JSON has it."""
    # Most attributes are text, and the call costs more than the encoding.
    return {name: {"S": value} if type(value) is str else encode(value) for name, value in item.items()}


def decode_item(item: Mapping[str, Attribute]) -> Item:
    """An item as Python has it."""
    return {name: decode(attribute) for name, attribute in item.items()}


def encode(value: Value) -> Attribute:
    """One value as a typed attribute; `Permanent` for what DynamoDB cannot keep."""
    if type(value) is str:
        return {"S": value}
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    # A subclass, such as a StrEnum, is kept as what it derives from.
    for kind, derived in _ENCODERS.items():
        if isinstance(value, kind):
            return derived(kind(value))
    raise Permanent(f"A {type(value).__name__} cannot be kept as an attribute.", code="ValidationException")


def decode(attribute: Attribute) -> Value:
    """One typed attribute as a value; sets, which Snavio does not write, come as lists. `Permanent` for anything else."""
    for kind, value in attribute.items():
        if kind == "S" or kind == "BOOL":  # noqa: PLR1714 - two comparisons beat building a set
            return value
        try:
            return _DECODERS[kind](value)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
            detail = f"An attribute of type {kind!r:.20} cannot be read: {type(error).__name__}."
            raise Permanent(detail, code="SerializationException") from None
    raise Permanent("An attribute without a type is no attribute.", code="SerializationException")


def _encode_int(value: int) -> Attribute:
    if not -_MAX_INT < value < _MAX_INT:
        raise Permanent("DynamoDB keeps no more than 38 digits of a number.", code="ValidationException")
    return {"N": str(value)}


def _encode_float(value: float) -> Attribute:
    magnitude = abs(value)
    if not math.isfinite(value) or (value and not _MIN_MAGNITUDE <= magnitude <= _MAX_MAGNITUDE):
        raise Permanent(f"DynamoDB cannot keep the number {value!r}.", code="ValidationException")
    if magnitude < _EXACT_FLOAT and value.is_integer():
        return {"N": str(int(value))}
    return {"N": repr(value)}


def _encode_list(value: list[Value]) -> Attribute:
    return {"L": [encode(element) for element in value]}


def _encode_map(value: dict[str, Value]) -> Attribute:
    return {"M": {name: encode(element) for name, element in value.items()}}


_ENCODERS: dict[type[Any], Callable[[Any], Attribute]] = {
    str: lambda value: {"S": value},
    bool: lambda value: {"BOOL": value},
    int: _encode_int,
    float: _encode_float,
    bytes: lambda value: {"B": value},
    type(None): lambda _: {"NULL": True},
    list: _encode_list,
    dict: _encode_map,
}


def _decode_number(text: str) -> int | float:
    # Most numbers with a point are times, and an int tried in vain costs more than looking for it.
    if len(text) <= _MAX_DIGITS and "." not in text:
        try:
            return int(text)
        except ValueError:
            pass
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT_FLOAT else number


def _decode_bytes(value: bytes | str) -> bytes:
    return binascii.a2b_base64(value) if isinstance(value, str) else bytes(value)


_DECODERS: dict[str, Callable[[Any], Value]] = {
    "N": _decode_number,
    "B": _decode_bytes,
    "NULL": lambda _: None,
    "L": lambda value: [decode(element) for element in value],
    "M": lambda value: {name: decode(element) for name, element in value.items()},
    "SS": list,
    "NS": lambda value: [_decode_number(element) for element in value],
    "BS": lambda value: [_decode_bytes(element) for element in value],
}
