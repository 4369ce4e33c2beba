"""The values that pass through the ports: messages, items, conditions and updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from snavio.aws.errors import Permanent, Transient

# An attribute value as Python sees it. Numbers are ints, or floats where a fraction is meant.
Value: TypeAlias = "str | int | float | bool | bytes | list[Value] | dict[str, Value] | None"
Item: TypeAlias = dict[str, Value]
Key: TypeAlias = Mapping[str, "str | int | bytes"]


class Received(msgspec.Struct, frozen=True):
    """A message in hand. `receipt` is valid for this receive only; `id` is the same each time it returns."""

    id: str
    receipt: str
    body: str
    receive_count: int
    sent_at: float
    """Seconds since the epoch, by the queue's clock."""
    group: str | None = None
    attributes: dict[str, str] = {}


class Outgoing(msgspec.Struct, frozen=True):
    """A message to send. At most ten attributes, all strings."""

    body: str
    group: str | None = None
    attributes: dict[str, str] = {}
    delay_seconds: int = 0


Fault: TypeAlias = Transient | Permanent
"""Why one entry of a batch failed while the call itself succeeded."""


class Below(msgspec.Struct, frozen=True, tag=True):
    """The attribute is present and less than the value."""

    name: str
    value: str | int | float


class AtMost(msgspec.Struct, frozen=True, tag=True):
    """The attribute is present and not greater than the value."""

    name: str
    value: str | int | float


class AtLeast(msgspec.Struct, frozen=True, tag=True):
    """The attribute is present and not less than the value."""

    name: str
    value: str | int | float


class Equals(msgspec.Struct, frozen=True, tag=True):
    """The attribute is present and equal to the value."""

    name: str
    value: str | int | float | bool


class Differs(msgspec.Struct, frozen=True, tag=True):
    """The attribute is absent, or present with another value."""

    name: str
    value: str | int | float | bool


class Exists(msgspec.Struct, frozen=True, tag=True):
    """The attribute is present."""

    name: str


class Absent(msgspec.Struct, frozen=True, tag=True):
    """The attribute is not present."""

    name: str


class AllOf(msgspec.Struct, frozen=True, tag=True):
    """Every one of the conditions holds."""

    conditions: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True, tag=True):
    """At least one of the conditions holds."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = "Below | AtMost | AtLeast | Equals | Differs | Exists | Absent | AllOf | AnyOf"


class Change(msgspec.Struct, frozen=True):
    """How an item changes: attributes set, numbers added to (from 0 when absent), attributes removed."""

    assign: dict[str, Value] = {}
    add: dict[str, int] = {}
    remove: tuple[str, ...] = ()


class Put(msgspec.Struct, frozen=True, tag=True):
    """Write a whole item."""

    table: str
    item: Item
    condition: Condition | None = None


class Update(msgspec.Struct, frozen=True, tag=True):
    """Change an item in place, creating it when absent."""

    table: str
    key: dict[str, str | int | bytes]
    change: Change
    condition: Condition | None = None


class Delete(msgspec.Struct, frozen=True, tag=True):
    """Remove an item; removing an absent one is no error."""

    table: str
    key: dict[str, str | int | bytes]
    condition: Condition | None = None


class Check(msgspec.Struct, frozen=True, tag=True):
    """Take part in a transaction without writing."""

    table: str
    key: dict[str, str | int | bytes]
    condition: Condition


Write: TypeAlias = Put | Update | Delete | Check


class SortRange(msgspec.Struct, frozen=True):
    """Bounds on a sort key in a query; both inclusive, either may be open."""

    name: str
    low: str | int | None = None
    high: str | int | None = None
    prefix: str | None = None


class Page(msgspec.Struct, frozen=True):
    """One page of a query or scan; `cursor` asks for the next and is None at the end."""

    items: list[Item]
    cursor: Item | None = None


class StoredObject(msgspec.Struct, frozen=True):
    """An object's bytes with the entity tag conditional puts compare."""

    body: bytes
    etag: str


class DataKey(msgspec.Struct, frozen=True):
    """A data key in the clear, for immediate use, and sealed, for keeping."""

    plaintext: bytes
    sealed: bytes
