"""RFC 8785 canonical JSON: one byte string for one JSON value, whoever serialised it.

Numbers are IEEE 754 doubles and are written as ECMAScript writes them; names are sorted by UTF-16 code units; a value
with duplicate names, a lone surrogate or a number out of range has no canonical form.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any, cast

_EXACT = 2**53
_LARGEST_DECIMAL = 1e21
_SMALLEST_DECIMAL = 1e-6
_SAFE_DIGITS = 15


class NotCanonicalisableError(ValueError):
    """The JSON text is valid but has no canonical form."""


def canonicalise(text: bytes | str) -> bytes:
    """The canonical form of a JSON text. Raises `NotCanonicalisableError`, or `ValueError` when it is not JSON."""
    try:
        return canonical(
            json.loads(
                text,
                object_pairs_hook=_without_duplicates,
                parse_int=_integer,
                parse_constant=_refuse_constant,
            )
        )
    except RecursionError:
        raise NotCanonicalisableError("nested too deeply") from None


def canonical(value: Any) -> bytes:
    """The canonical form of a value made of dicts, lists, strings, numbers, booleans and None."""
    parts: list[str] = []
    _write(value, parts)
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError:
        raise NotCanonicalisableError("a string holds a lone surrogate") from None


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif value is None:
        out.append("null")
    elif value is True:
        out.append("true")
    elif value is False:
        out.append("false")
    elif isinstance(value, int):
        out.append(str(value) if -_EXACT <= value <= _EXACT else _double(_to_double(value)))
    elif isinstance(value, float):
        out.append(_double(value))
    elif isinstance(value, dict):
        _write_object(cast("dict[Any, Any]", value), out)
    elif isinstance(value, (list, tuple)):
        out.append("[")
        separator = ""
        for element in cast("list[Any]", value):
            out.append(separator)
            _write(element, out)
            separator = ","
        out.append("]")
    else:
        raise NotCanonicalisableError(f"{type(value).__name__} is not a JSON value")


def _write_object(value: dict[Any, Any], out: list[str]) -> None:
    for name in value:
        if not isinstance(name, str):
            raise NotCanonicalisableError("an object's name is not a string")
    names = cast("dict[str, Any]", value)
    # Code points and UTF-16 code units sort alike unless a name goes beyond the basic plane.
    order = sorted(names) if all(name.isascii() for name in names) else sorted(names, key=_utf16)
    out.append("{")
    separator = ""
    for name in order:
        out.append(separator)
        out.append(encode_basestring(name))
        out.append(":")
        _write(names[name], out)
        separator = ","
    out.append("}")


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _double(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - the definition of NaN
        raise NotCanonicalisableError("a number is not finite")
    if value == 0:
        return "0"
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0")
    mantissa, _, exponent = text.partition("e")
    if _SMALLEST_DECIMAL <= abs(value) < _LARGEST_DECIMAL:
        return _positional(mantissa, int(exponent))
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-').lstrip('0')}"


def _positional(mantissa: str, exponent: int) -> str:
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    point = len(whole) + exponent
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits}{'0' * (point - len(digits))}"


def _to_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise NotCanonicalisableError("a number is out of range") from None


def _integer(text: str) -> int | float:
    # Longer integers are doubles to everyone else, and Python refuses to parse the longest.
    return int(text) if len(text) <= _SAFE_DIGITS else float(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NotCanonicalisableError("an object has the same name twice")
    return value


def _refuse_constant(name: str) -> Any:
    raise NotCanonicalisableError(f"{name} is not JSON")
