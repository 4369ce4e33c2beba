"""The aggregation store: read by one Query for each (window, shard), from whichever process asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from snavio.spark.clients import client_of
from snavio.spark.items import Attribute, Attributes, plain
from snavio.wire.stats import StatsItem, partition_key


class Store(msgspec.Struct, frozen=True):
    """Which table, where. Credentials come from the standard chain of the process that reads."""

    table: str
    region: str | None = None
    endpoint_url: str | None = None
    """Only to override what the standard AWS variables say."""


def query_shard(
    store: Store, window: int, shard: int, attributes: Sequence[str]
) -> Iterator[list[Attributes]]:
    """The items of one shard of one window, a page at a time, with only the attributes asked for."""
    client = client_of("dynamodb", store.region, store.endpoint_url)
    names = {f"#{i}": name for i, name in enumerate(attributes)}
    request: dict[str, Any] = {
        "TableName": store.table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": partition_key(window, shard)}},
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ConsistentRead": True,
    }
    while True:
        page = client.query(**request)
        yield [
            {name: plain(value) for name, value in item.items()}
            for item in cast("list[dict[str, dict[str, Any]]]", page.get("Items", []))
        ]
        if not page.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def write_items(store: Store, items: Iterable[StatsItem]) -> None:
    """Put items into the store, as workers do; for feeds that no worker writes."""
    client = client_of("dynamodb", store.region, store.endpoint_url)
    for item in items:
        client.put_item(TableName=store.table, Item=typed(msgspec.structs.asdict(item)))


def typed(item: Mapping[str, Attribute]) -> dict[str, dict[str, Any]]:
    """An item as the store's low-level calls take it."""
    return {name: _typed(value) for name, value in item.items()}


def _typed(value: Attribute) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case str():
            return {"S": value}
        case None:
            return {"NULL": True}
