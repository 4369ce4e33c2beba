"""Reading the aggregation store: one Query for each (window, shard), from whichever process asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias, cast

import botocore.session
import msgspec
from botocore.config import Config

from snavio.wire.stats import partition_key

Attribute: TypeAlias = str | int | float | bool | bytes | None
Attributes: TypeAlias = dict[str, Attribute]


class Store(msgspec.Struct, frozen=True):
    """Which table, where. Credentials come from the standard chain of the process that reads."""

    table: str
    region: str | None = None
    endpoint_url: str | None = None
    """Only to override what the standard AWS variables say."""


class DynamoDB(Protocol):
    """The calls this package makes of DynamoDB."""

    def query(self, **request: Any) -> dict[str, Any]: ...
    def put_item(self, **request: Any) -> dict[str, Any]: ...
    def batch_write_item(self, **request: Any) -> dict[str, Any]: ...


@cache
def client_of(region: str | None, endpoint_url: str | None) -> DynamoDB:
    """A client, made once a process: loading its model costs more than a query."""
    session = cast("Any", botocore.session.get_session())
    return session.create_client(
        "dynamodb",
        region_name=region,
        endpoint_url=endpoint_url,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 8}, connect_timeout=5, read_timeout=30
        ),
    )


def query_shard(
    store: Store, window: int, shard: int, attributes: Sequence[str]
) -> Iterator[list[Attributes]]:
    """The items of one shard of one window, a page at a time, with only the attributes asked for."""
    client = client_of(store.region, store.endpoint_url)
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


def plain(value: Mapping[str, Any]) -> Attribute:
    """A typed attribute as Python has it; a kind the feed never uses becomes None."""
    ((kind, held),) = value.items()
    match kind:
        case "N":
            return int(held) if held.lstrip("-").isdigit() else float(held)
        case "S" | "B" | "BOOL":
            return held
        case _:
            return None


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
