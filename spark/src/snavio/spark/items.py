"""An item of the feed as the store holds it, checked. Pure.

Any figure may stand in an item: none may stop the reading of the others, nor overflow a sum that it goes into. An item
with one out of range is malformed, and none of it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, get_type_hints

import msgspec

from snavio.wire.stats import MAX_ITEM_ROWS, Columns, MalformedStats, Service, decode_columns

Attribute: TypeAlias = str | int | float | bool | bytes | None
Attributes: TypeAlias = dict[str, Attribute]

# Far above anything real, and far below where sums and differences of them leave 64 bits.
_Sequence: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
_Part: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**16)]
_Rows: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_ITEM_ROWS)]
_Crc: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class Head(msgspec.Struct, frozen=True, gc=False):
    """What an item says of itself, beside its key and its counts."""

    worker: Annotated[str, msgspec.Meta(min_length=1)]
    service: Service
    part: _Part
    parts: _Part
    sequence: _Sequence
    last: bool
    row_count: _Rows
    digest: _Crc


HEAD = Head.__struct_fields__
_KINDS: dict[str, Any] = get_type_hints(Head, include_extras=True)


def readable(item: Mapping[str, Attribute]) -> Attributes:
    """The attributes asked for, with None for each that is not what it should be."""
    return {
        name: value if _fits(value, _KINDS[name]) else None for name, value in item.items() if name in _KINDS
    }


def counts_of(item: Mapping[str, Attribute]) -> tuple[Service, Columns]:
    """The service and the counts of an item, all of it in order. Raises `MalformedStats`."""
    try:
        head = msgspec.convert(item, Head)
    except msgspec.ValidationError as error:
        raise MalformedStats(f"The item is none of the feed: {error}.") from error
    if head.part >= head.parts:
        raise MalformedStats(f"The item is part {head.part} of {head.parts}, counted from 0.")
    rows = item.get("rows")
    if not isinstance(rows, bytes):
        raise MalformedStats("The item has no rows.")
    columns = decode_columns(rows)
    if head.row_count != len(columns.count):
        raise MalformedStats(f"The item says {head.row_count} rows and holds {len(columns.count)}.")
    return head.service, columns


def set_aside(item: Mapping[str, Attribute], fault: MalformedStats) -> Attributes:
    """What is kept of an item that is malformed: all that was read of it, and why nothing counts."""
    rows = item.get("rows")
    raw = rows if isinstance(rows, bytes) else None
    said = {name: value for name, value in item.items() if name in HEAD or (name == "rows" and raw is None)}
    return {
        "item": item.get("sk"),
        "fault": str(fault),
        "head": msgspec.json.encode(said).decode(),
        "raw": raw,
    }


def plain(value: Mapping[str, Any]) -> Attribute:
    """A typed attribute as Python has it; a kind the feed never uses becomes None."""
    match value:
        case {"N": str(held)}:
            return _number(held)
        case {"S": str(held)} | {"B": bytes(held)} | {"BOOL": bool(held)}:
            return held
        case _:
            return None


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _fits(value: Attribute, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
