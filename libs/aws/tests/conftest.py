"""The implementations of the ports, for the contract suites."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pytest
import pytest_asyncio

from snavio.aws.boto.session import Aws, open_aws
from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.queues import MemoryQueues
from snavio.aws.memory.tables import MemoryTables
from snavio.aws.memory.vault import MemoryVault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snavio.aws.ports import Objects, Queues, Tables, Vault


class Queue(NamedTuple):
    """A queue of a world, with its dead letters where it has any."""

    url: str
    arn: str
    dead_letters: str | None = None


class World(Protocol):
    """The ports of one implementation, and how to make the resources they work on."""

    queues: Queues
    tables: Tables
    objects: Objects
    vault: Vault

    async def queue(self, *, visibility_seconds: int = 30, max_receive_count: int | None = None) -> Queue: ...

    async def table(self, *, key: Sequence[str], indexes: Mapping[str, Sequence[str]] | None = None) -> str:
        """A new table; attributes named `n…` are numbers, others strings."""
        ...

    async def bucket(self) -> str: ...

    async def key(self) -> str: ...


class MemoryWorld:
    def __init__(self) -> None:
        self.queues = MemoryQueues()
        self.tables = MemoryTables()
        self.objects = MemoryObjects()
        self.vault = MemoryVault()

    async def queue(self, *, visibility_seconds: int = 30, max_receive_count: int | None = None) -> Queue:
        name = _unique()
        dead = self.queues.create(f"{name}-dlq") if max_receive_count else None
        queue = self.queues.create(
            name,
            visibility_seconds=visibility_seconds,
            max_receive_count=max_receive_count,
            dead_letters=dead,
        )
        return Queue(queue.url, queue.arn, dead.url if dead else None)

    async def table(self, *, key, indexes=None) -> str:
        return self.tables.create(_unique(), key=key, indexes=indexes).name

    async def bucket(self) -> str:
        name = _unique()
        self.objects.buckets[name] = {}
        return name

    async def key(self) -> str:
        name = _unique()
        self.vault.keys.add(name)
        return name


class RealWorld:
    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self.queues = aws.queues
        self.tables = aws.tables
        self.objects = aws.objects
        self.vault = aws.vault

    async def queue(self, *, visibility_seconds: int = 30, max_receive_count: int | None = None) -> Queue:
        sqs = await self._aws.client("sqs")
        name = _unique()
        attributes = {"VisibilityTimeout": str(visibility_seconds)}
        dead = None
        if max_receive_count:
            dead = await self.queue()
            policy = {"deadLetterTargetArn": dead.arn, "maxReceiveCount": max_receive_count}
            attributes["RedrivePolicy"] = json.dumps(policy)
        url = (await sqs.create_queue(QueueName=name, Attributes=attributes))["QueueUrl"]
        answer = await sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return Queue(url, answer["Attributes"]["QueueArn"], dead.url if dead else None)

    async def table(self, *, key, indexes=None) -> str:
        dynamodb = await self._aws.client("dynamodb")
        name = _unique()
        secondary = {
            "GlobalSecondaryIndexes": [
                {"IndexName": index, "KeySchema": _schema(parts), "Projection": {"ProjectionType": "ALL"}}
                for index, parts in (indexes or {}).items()
            ]
        }
        attributes = {*key, *(part for parts in (indexes or {}).values() for part in parts)}
        await dynamodb.create_table(
            TableName=name,
            KeySchema=_schema(key),
            AttributeDefinitions=[
                {"AttributeName": attribute, "AttributeType": "N" if attribute.startswith("n") else "S"}
                for attribute in sorted(attributes)
            ],
            BillingMode="PAY_PER_REQUEST",
            **(secondary if indexes else {}),
        )
        await dynamodb.get_waiter("table_exists").wait(TableName=name)
        return name

    async def bucket(self) -> str:
        s3 = await self._aws.client("s3")
        name = _unique()
        region = {"LocationConstraint": self._aws.region}
        await s3.create_bucket(Bucket=name, CreateBucketConfiguration=region)
        return name

    async def key(self) -> str:
        kms = await self._aws.client("kms")
        return (await kms.create_key())["KeyMetadata"]["KeyId"]


def _unique() -> str:
    return f"contract-{uuid.uuid4().hex[:12]}"


def _schema(key: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(key, ("HASH", "RANGE"), strict=False)
    ]


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=[
        "memory",
        pytest.param("boto", marks=pytest.mark.aws),
        pytest.param("lean", marks=pytest.mark.aws),
    ],
)
async def world(request):
    """Each implementation of the ports in turn."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    endpoint, session = request.getfixturevalue("aws_endpoint"), request.getfixturevalue("aws_session")
    async with open_aws(
        session=session, region="eu-central-1", endpoint_url=endpoint, lean=request.param == "lean"
    ) as aws:
        yield RealWorld(aws)
