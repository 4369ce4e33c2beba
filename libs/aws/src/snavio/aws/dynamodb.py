"""The `Tables` port on DynamoDB's JSON protocol."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.aws import limits
from snavio.aws.attributes import Attribute, decode_item, encode_item
from snavio.aws.expressions import condition_parameters, query_parameters, update_parameters
from snavio.aws.values import Check, Delete, Page, Put, Update

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from snavio.aws.call import Call
    from snavio.aws.values import Change, Condition, Item, Key, SortRange, Write

_OLD_ON_FAILURE = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


class _Nothing(msgspec.Struct):
    """An answer whose content does not matter."""


class _Got(msgspec.Struct, rename="pascal"):
    item: dict[str, Attribute] | None = None


class _Updated(msgspec.Struct, rename="pascal"):
    attributes: dict[str, Attribute] = {}


class _PutRequest(msgspec.Struct, rename="pascal"):
    item: dict[str, Attribute]


class _WriteRequest(msgspec.Struct, rename="pascal"):
    put_request: _PutRequest


class _Unprocessed(msgspec.Struct, rename="pascal"):
    unprocessed_items: dict[str, list[_WriteRequest]] = {}


class _Found(msgspec.Struct, rename="pascal"):
    items: list[dict[str, Attribute]] = []
    last_evaluated_key: dict[str, Attribute] | None = None


class DynamoTables:
    """`Tables` over any client that carries DynamoDB's operations."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def get(self, table: str, key: Key, *, consistent: bool = True) -> Item | None:
        """The item, or None."""
        parameters = {"TableName": table, "Key": encode_item(key), "ConsistentRead": consistent}
        answer = await self._call("GetItem", parameters, _Got)
        return None if answer.item is None else decode_item(answer.item)

    async def put(self, table: str, item: Item, *, condition: Condition | None = None) -> None:
        """Write an item, if the condition holds."""
        await self._call("PutItem", _put(table, item, condition), _Nothing)

    async def update(
        self, table: str, key: Key, change: Change, *, condition: Condition | None = None
    ) -> Item:
        """Change an item in place, if the condition holds, and return it whole as it now is."""
        parameters = _update(table, key, change, condition)
        parameters["ReturnValues"] = "ALL_NEW"
        answer = await self._call("UpdateItem", parameters, _Updated)
        return decode_item(answer.attributes)

    async def delete(self, table: str, key: Key, *, condition: Condition | None = None) -> None:
        """Remove an item, if the condition holds."""
        await self._call("DeleteItem", _keyed(table, key, condition), _Nothing)

    async def transact(self, writes: Sequence[Write], *, token: str | None = None) -> None:
        """All of up to 100 writes or none; without a token one is made, so that a retry acts once."""
        limits.require_transaction(len(writes), token)
        token = token or str(uuid.uuid4())
        parameters = {"TransactItems": [_write(write) for write in writes], "ClientRequestToken": token}
        await self._call("TransactWriteItems", parameters, _Nothing)

    async def put_batch(self, table: str, items: Sequence[Item]) -> list[Item]:
        """Write up to 25 items with different keys in one call; returns those not written."""
        if not items:
            return []
        limits.require_batch_write(len(items))
        limits.require_items(items)
        requests = [{"PutRequest": {"Item": encode_item(item)}} for item in items]
        answer = await self._call("BatchWriteItem", {"RequestItems": {table: requests}}, _Unprocessed)
        # A table may be named by its ARN and answered by its name; there is only one here.
        return [
            decode_item(request.put_request.item)
            for left in answer.unprocessed_items.values()
            for request in left
        ]

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
        consistent: bool = True,
    ) -> Page:
        """One page of a partition, in sort order."""
        parameters: dict[str, Any] = {"TableName": table, **query_parameters(partition, sort)}
        if index is not None:
            parameters["IndexName"] = index
        elif consistent:
            parameters["ConsistentRead"] = True
        if limit is not None:
            parameters["Limit"] = limit
        if descending:
            parameters["ScanIndexForward"] = False
        return await self._page("Query", parameters, cursor)

    async def scan(self, table: str, *, segment: int = 0, segments: int = 1) -> AsyncIterator[list[Item]]:
        """Every item of one segment of the table, a page at a time; empty pages are left out."""
        limits.require_segment(segment, segments)
        parameters = {
            "TableName": table,
            "Segment": segment,
            "TotalSegments": segments,
            "ConsistentRead": True,
        }
        cursor: Item | None = None
        while True:
            page = await self._page("Scan", parameters, cursor)
            if page.items:
                yield page.items
            if page.cursor is None:
                return
            cursor = page.cursor

    async def _page(self, operation: str, parameters: dict[str, Any], cursor: Item | None) -> Page:
        if cursor is not None:
            parameters = {**parameters, "ExclusiveStartKey": encode_item(cursor)}
        answer = await self._call(operation, parameters, _Found)
        last = answer.last_evaluated_key
        return Page([decode_item(item) for item in answer.items], decode_item(last) if last else None)


def _put(table: str, item: Item, condition: Condition | None) -> dict[str, Any]:
    limits.require_item(item)
    return _conditional({"TableName": table, "Item": encode_item(item)}, condition)


def _update(table: str, key: Key, change: Change, condition: Condition | None) -> dict[str, Any]:
    parameters: dict[str, Any] = {"TableName": table, "Key": encode_item(key)}
    parameters.update(update_parameters(change, condition))
    return parameters if condition is None else parameters | _OLD_ON_FAILURE


def _keyed(table: str, key: Key, condition: Condition | None) -> dict[str, Any]:
    return _conditional({"TableName": table, "Key": encode_item(key)}, condition)


def _conditional(parameters: dict[str, Any], condition: Condition | None) -> dict[str, Any]:
    if condition is None:
        return parameters
    return parameters | condition_parameters(condition) | _OLD_ON_FAILURE


def _write(write: Write) -> dict[str, Any]:
    match write:
        case Put(table, item, condition):
            return {"Put": _put(table, item, condition)}
        case Update(table, key, change, condition):
            return {"Update": _update(table, key, change, condition)}
        case Delete(table, key, condition):
            return {"Delete": _keyed(table, key, condition)}
        case Check(table, key, condition):
            return {"ConditionCheck": _keyed(table, key, condition)}
