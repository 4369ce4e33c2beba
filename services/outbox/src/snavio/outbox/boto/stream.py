"""The `Stream` port on DynamoDB Streams."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec

from snavio.aws.attributes import decode_item
from snavio.aws.boto.faults import translated
from snavio.aws.errors import NotFound, SnavioError
from snavio.outbox.values import Record, RecordPage, Shard, read_row

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class DynamoStream:
    """Reads the stream of one table. `client` opens raw aiobotocore clients by service."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], table: str) -> None:
        self._client = client
        self._table = table

    async def arn(self) -> str:
        """The stream the table has now."""
        dynamodb = await self._client("dynamodb")
        with translated("DescribeTable"):
            answer = await dynamodb.describe_table(TableName=self._table)
        arn = answer["Table"].get("LatestStreamArn")
        if not arn:
            raise NotFound(f"The table {self._table} has no stream.", code="ResourceNotFoundException")
        return str(arn)

    async def shards(self, stream: str) -> list[Shard]:
        """Every shard it lists."""
        streams = await self._client("dynamodbstreams")
        found: list[Shard] = []
        start: dict[str, str] = {}
        while True:
            with translated("DescribeStream"):
                answer = await streams.describe_stream(StreamArn=stream, **start)
            described = answer["StreamDescription"]
            found += [Shard(shard["ShardId"], shard.get("ParentShardId")) for shard in described["Shards"]]
            last = described.get("LastEvaluatedShardId")
            if not last:
                return found
            start = {"ExclusiveStartShardId": last}

    async def iterator(self, stream: str, shard: str, *, after: str | None) -> str:
        """Where to read on."""
        streams = await self._client("dynamodbstreams")
        where = (
            {"ShardIteratorType": "TRIM_HORIZON"}
            if after is None
            else {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
        )
        with translated("GetShardIterator"):
            answer = await streams.get_shard_iterator(StreamArn=stream, ShardId=shard, **where)
        return str(answer["ShardIterator"])

    async def read(self, iterator: str, *, limit: int) -> RecordPage:
        """The next records."""
        streams = await self._client("dynamodbstreams")
        with translated("GetRecords"):
            answer = await streams.get_records(ShardIterator=iterator, Limit=limit)
        return RecordPage([_record(record) for record in answer["Records"]], answer.get("NextShardIterator"))


def _record(record: dict[str, Any]) -> Record:
    change = record["dynamodb"]
    sequence = str(change["SequenceNumber"])
    created_at = cast("datetime", change["ApproximateCreationDateTime"]).timestamp()
    if record["eventName"] != "INSERT":
        return Record(sequence, created_at)
    try:
        return Record(sequence, created_at, row=read_row(decode_item(change["NewImage"])))
    except (msgspec.ValidationError, KeyError, SnavioError) as error:
        return Record(sequence, created_at, unreadable=str(error))
