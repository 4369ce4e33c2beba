"""The `Rows` port on DynamoDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import ConditionFailed, Refused
from snavio.aws.values import Change, Exists
from snavio.outbox.values import read_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from snavio.aws.ports import Tables
    from snavio.aws.values import Item, Value
    from snavio.outbox.values import RowKey, StoredRow
    from snavio.wire.outbox import OutboxRow

_ROUNDS = 5
_PAUSE_SECONDS = 0.05


class DynamoRows:
    """The outbox table: the common port where it reaches, batches of its own where that has none."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], tables: Tables, table: str) -> None:
        self._client = client
        self._tables = tables
        self._table = table

    async def existing(self, keys: Sequence[RowKey]) -> set[RowKey]:
        """Those of up to a hundred rows that are still there."""
        dynamodb = await self._client("dynamodb")
        found: set[RowKey] = set()
        asked: dict[str, Any] = {
            self._table: {
                "Keys": [_key(key) for key in keys],
                "ConsistentRead": True,
                "ProjectionExpression": "pk, sk",
            }
        }
        for attempt in range(_ROUNDS):
            with translated("BatchGetItem"):
                answer = await dynamodb.batch_get_item(RequestItems=asked)
            for item in answer["Responses"].get(self._table, []):
                found.add((item["pk"]["S"], item["sk"]["S"]))
            asked = answer.get("UnprocessedKeys") or {}
            if not asked:
                return found
            await anyio.sleep(_PAUSE_SECONDS * 2**attempt)
        raise Refused("BatchGetItem: keys were left unprocessed")

    async def remove(self, keys: Sequence[RowKey]) -> None:
        """Remove up to 25 rows."""
        dynamodb = await self._client("dynamodb")
        asked: dict[str, Any] = {self._table: [{"DeleteRequest": {"Key": _key(key)}} for key in keys]}
        for attempt in range(_ROUNDS):
            with translated("BatchWriteItem"):
                answer = await dynamodb.batch_write_item(RequestItems=asked)
            asked = answer.get("UnprocessedItems") or {}
            if not asked:
                return
            await anyio.sleep(_PAUSE_SECONDS * 2**attempt)
        raise Refused("BatchWriteItem: items were left unprocessed")

    async def annotate(self, row: StoredRow, *, alerted: bool, refused_at: int = 0) -> None:
        """Note on a row, if it is still there, why it is."""
        noted: dict[str, Value] = {}
        if alerted:
            noted["alerted"] = 1
        if refused_at:
            noted["refused_at"] = refused_at
        try:
            await self._tables.update(
                self._table, {"pk": row.pk, "sk": row.sk}, Change(assign=noted), condition=Exists("pk")
            )
        except ConditionFailed:
            return

    async def write(self, rows: Sequence[OutboxRow]) -> None:
        """Add up to 25 rows."""
        left = [cast("Item", msgspec.structs.asdict(row)) for row in rows]
        for attempt in range(_ROUNDS):
            left = await self._tables.put_batch(self._table, left)
            if not left:
                return
            await anyio.sleep(_PAUSE_SECONDS * 2**attempt)
        raise Refused("BatchWriteItem: items were left unprocessed")

    async def all(self) -> AsyncIterator[list[StoredRow]]:
        """Every readable row, a page at a time; the stream has reported the others."""
        async for page in self._tables.scan(self._table):
            yield [row for item in page if (row := _row(item)) is not None]


def _key(key: RowKey) -> dict[str, dict[str, str]]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def _row(item: Item) -> StoredRow | None:
    try:
        return read_row(item)
    except msgspec.ValidationError:
        return None
