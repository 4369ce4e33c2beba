"""What DynamoDB would make of a condition and of a change, decided on plain items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snavio.aws.errors import Permanent
from snavio.aws.values import Absent, AllOf, AnyOf, AtLeast, AtMost, Below, Differs, Equals, Exists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snavio.aws.values import Change, Condition, Item, Key, Value


def holds(condition: Condition, item: Mapping[str, Value]) -> bool:
    """Whether an item (empty for an absent one) satisfies a condition."""
    match condition:
        case AllOf(conditions):
            return all(holds(each, item) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, item) for each in conditions)
        case Exists(name):
            return name in item
        case Absent(name):
            return name not in item
        case Equals(name, value):
            return name in item and _same(item[name], value)
        case Differs(name, value):
            return name not in item or not _same(item[name], value)
        case Below(name, value) | AtMost(name, value) | AtLeast(name, value):
            return name in item and _ordered(condition, item[name], value)


def changed(item: Mapping[str, Value], key: Key, change: Change) -> Item:
    """The item after a change, created from its key when absent."""
    named = [*change.assign, *change.add, *change.remove]
    if len(set(named)) != len(named):
        raise Permanent("A change names an attribute twice.", code="ValidationException")
    if not key.keys().isdisjoint(named):
        raise Permanent("A change cannot touch the key.", code="ValidationException")
    result: Item = {**key, **item, **change.assign}
    for name, amount in change.add.items():
        before = result.get(name, 0)
        if isinstance(before, bool) or not isinstance(before, int | float):
            raise Permanent(f"{name} is not a number to add to.", code="ValidationException")
        result[name] = before + amount
    for name in change.remove:
        result.pop(name, None)
    return result


def _ordered(condition: Below | AtMost | AtLeast, found: Any, value: Any) -> bool:
    if _kind(found) != _kind(value):
        return False
    match condition:
        case Below():
            return bool(found < value)
        case AtMost():
            return bool(found <= value)
        case AtLeast():
            return bool(found >= value)


def _same(found: Value, value: Value) -> bool:
    # Python holds True equal to 1; DynamoDB does not.
    return _kind(found) == _kind(value) and found == value


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "BOOL"
    return "N" if isinstance(value, int | float) else type(value).__name__
