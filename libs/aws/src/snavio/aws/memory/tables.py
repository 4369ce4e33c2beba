"""The `Tables` port in memory."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from anyio.lowlevel import checkpoint

from snavio.aws import limits
from snavio.aws.attributes import decode, encode
from snavio.aws.errors import ConditionFailed, NotFound, Permanent
from snavio.aws.expressions import query_parameters
from snavio.aws.memory.conditions import changed, holds
from snavio.aws.values import Check, Delete, Page, Put, Update

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from snavio.aws.values import Change, Condition, Item, Key, SortRange, Value, Write

Place: TypeAlias = tuple[Any, ...]
"""The values of an item's key attributes."""

PAGE_BYTES = 1_048_576
_SCAN_PAGE = 100
_TOKEN_SECONDS = 600


@dataclass(slots=True)
class MemoryTable:
    """A table: its key attributes, those of its indexes, and its items by place."""

    name: str
    key: tuple[str, ...]
    indexes: dict[str, tuple[str, ...]]
    items: dict[Place, Item] = field(default_factory=dict["Place", "Item"])

    def place_of(self, item: Mapping[str, Value]) -> Place:
        """Where an item belongs."""
        place = tuple([item.get(name) for name in self.key])
        if None in place or "" in place:
            raise Permanent(f"An item of {self.name} has the key {self.key}.", code="ValidationException")
        return place

    def place_at(self, key: Key) -> Place:
        """Where a key points."""
        if set(key) != set(self.key):
            raise Permanent(f"The key of {self.name} is {self.key}.", code="ValidationException")
        return self.place_of(key)


class MemoryTables:
    """`Tables` in memory. Every operation acts at one instant, after letting other tasks run."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.tables: dict[str, MemoryTable] = {}
        self._clock = clock
        self._tokens: dict[str, tuple[float, bytes]] = {}

    def create(
        self, name: str, *, key: Sequence[str], indexes: Mapping[str, Sequence[str]] | None = None
    ) -> MemoryTable:
        """Add an empty table with a partition key and perhaps a sort key."""
        table = MemoryTable(name, tuple(key), {name: tuple(parts) for name, parts in (indexes or {}).items()})
        self.tables[name] = table
        return table

    async def get(self, table: str, key: Key, *, consistent: bool = True) -> Item | None:  # noqa: ARG002
        """The item, or None."""
        await checkpoint()
        found = self._table(table)
        item = found.items.get(found.place_at(key))
        return None if item is None else _copy(item)

    async def put(self, table: str, item: Item, *, condition: Condition | None = None) -> None:
        """Write an item, if the condition holds."""
        await checkpoint()
        self._apply([Put(table, item, condition)])

    async def update(
        self, table: str, key: Key, change: Change, *, condition: Condition | None = None
    ) -> Item:
        """Change an item in place, if the condition holds, and return it whole as it now is."""
        await checkpoint()
        self._apply([Update(table, dict(key), change, condition)])
        found = self._table(table)
        return _copy(found.items[found.place_at(key)])

    async def delete(self, table: str, key: Key, *, condition: Condition | None = None) -> None:
        """Remove an item, if the condition holds."""
        await checkpoint()
        self._apply([Delete(table, dict(key), condition)])

    async def transact(self, writes: Sequence[Write], *, token: str | None = None) -> None:
        """All of up to 100 writes or none; with the same token once within ten minutes."""
        limits.require_transaction(len(writes), token)
        await checkpoint()
        now = self._clock()
        if token is None:
            self._apply(writes, transaction=True)
            return
        content = msgspec.msgpack.encode(writes)
        seen = self._tokens.get(token)
        if seen is not None and now < seen[0] + _TOKEN_SECONDS:
            if seen[1] != content:
                raise Permanent(
                    f"Token {token} came with other writes.", code="IdempotentParameterMismatchException"
                )
            return
        self._apply(writes, transaction=True)
        self._tokens[token] = (now, content)

    async def put_batch(self, table: str, items: Sequence[Item]) -> list[Item]:
        """Write up to 25 items with different keys; the fake leaves none unwritten."""
        limits.require_batch_write(len(items))
        await checkpoint()
        found = self._table(table)
        if len({found.place_of(item) for item in items}) != len(items):
            raise Permanent("A batch names a key twice.", code="ValidationException")
        self._apply([Put(table, item) for item in items])
        return []

    async def query(
        self,
        table: str,
        partition: tuple[str, str | int],
        *,
        sort: SortRange | None = None,
        index: str | None = None,
        limit: int | None = None,
        descending: bool = False,
        cursor: Item | None = None,
        consistent: bool = True,  # noqa: ARG002 - one copy of the data is always consistent
    ) -> Page:
        """One page of a partition, in sort order."""
        query_parameters(partition, sort)
        await checkpoint()
        found = self._table(table)
        names = _queried(found, index, partition, sort)
        # Items of equal index keys are told apart by their own key.
        order = tuple(dict.fromkeys((*names, *found.key)))
        name, value = partition
        asked, within = set(names), _within(sort)
        rows = [
            (tuple([item[part] for part in order]), item)
            for item in found.items.values()
            if item.get(name) == value and item.keys() >= asked and within(item)
        ]
        rows.sort(key=itemgetter(0), reverse=descending)
        if cursor is not None:
            last = tuple(cursor[name] for name in order)
            rows = [row for row in rows if (row[0] < last if descending else row[0] > last)]
        return _page(rows, order, limit)

    async def scan(self, table: str, *, segment: int = 0, segments: int = 1) -> AsyncIterator[list[Item]]:
        """Every item of one segment of the table, a page at a time."""
        limits.require_segment(segment, segments)
        await checkpoint()
        found = self._table(table)
        places = [place for place in found.items if zlib.crc32(repr(place[0]).encode()) % segments == segment]
        for start in range(0, len(places), _SCAN_PAGE):
            page = [
                _copy(found.items[place])
                for place in places[start : start + _SCAN_PAGE]
                if place in found.items
            ]
            if page:
                yield page
            await checkpoint()

    def _apply(self, writes: Sequence[Write], *, transaction: bool = False) -> None:
        """Decide every write on the state found, then act on all of them."""
        pending: dict[tuple[str, Place], Item | None] = {}
        for index, write in enumerate(writes):
            table = self._table(write.table)
            place = table.place_of(write.item) if isinstance(write, Put) else table.place_at(write.key)
            if (write.table, place) in pending:
                raise Permanent("A transaction names an item twice.", code="ValidationException")
            old = table.items.get(place)
            if write.condition is not None and not holds(write.condition, old or {}):
                raise ConditionFailed(
                    f"The condition on {place} of {write.table} does not hold.",
                    old=None if old is None else _copy(old),
                    index=index if transaction else None,
                )
            pending[write.table, place] = _after(write, old)
        for (name, place), item in pending.items():
            if item is None:
                self.tables[name].items.pop(place, None)
            else:
                self.tables[name].items[place] = item

    def _table(self, name: str) -> MemoryTable:
        found = self.tables.get(name)
        if found is None:
            raise NotFound(f"There is no table {name}.", code="ResourceNotFoundException")
        return found


def _after(write: Write, old: Item | None) -> Item | None:
    match write:
        case Put(_, item):
            result = _copy(item)
        case Update(_, key, change):
            result = _copy(changed(old or {}, key, change))
        case Delete():
            return None
        case Check():
            return old
    limits.require_item(result)
    return result


def _copy(item: Item) -> Item:
    """An item nobody else holds, with values as DynamoDB would return them."""
    # Text comes back as it is; a number may not.
    return {name: value if type(value) is str else decode(encode(value)) for name, value in item.items()}


def _queried(
    table: MemoryTable, index: str | None, partition: tuple[str, str | int], sort: SortRange | None
) -> tuple[str, ...]:
    names = table.key if index is None else table.indexes.get(index)
    asked = (partition[0],) if sort is None else (partition[0], sort.name)
    if names is None or names[: len(asked)] != asked:
        raise Permanent(f"{table.name} cannot be queried by {asked}.", code="ValidationException")
    return names


def _within(sort: SortRange | None) -> Callable[[Item], bool]:
    """Whether an item lies in the range."""
    if sort is None:
        return lambda _item: True
    name, prefix = sort.name, sort.prefix
    low: Any = sort.low
    high: Any = sort.high
    if prefix is not None:
        return lambda item: str(item[name]).startswith(prefix)
    if high is None:
        return lambda item: low is None or item[name] >= low
    return lambda item: (low is None or item[name] >= low) and item[name] <= high


def _page(rows: list[tuple[Place, Item]], order: tuple[str, ...], limit: int | None) -> Page:
    """As much as DynamoDB gives at once: up to the limit, or up to a mebibyte."""
    items: list[Item] = []
    size = 0
    for place, item in rows:
        items.append(_copy(item))
        size += limits.item_bytes(item)
        if len(items) == limit or size >= PAGE_BYTES:
            return Page(items, dict(zip(order, place, strict=True)))
    return Page(items)
