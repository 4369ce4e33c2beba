"""A local AWS for the contract suites, started once a run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
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


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory):
    given = os.environ.get("SNAVIO_AWS_ENDPOINT_URL")
    if given:
        yield given
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("ministack")
    environment = os.environ | {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": str(folder),
        "S3_DATA_DIR": str(folder / "s3"),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"], env=environment, stdout=log, stderr=log, cwd=folder
        )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(endpoint, process)
        yield endpoint
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_healthy(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture(autouse=True, scope="session")
def aws_environment():
    """Whatever the machine's own AWS variables say, tests speak to the local one as root."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_REGION", "eu-central-1")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield


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
    scope="session", loop_scope="session", params=["memory", pytest.param("boto", marks=pytest.mark.aws)]
)
async def world(request, aws_environment):
    """Each implementation of the ports in turn."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    endpoint = request.getfixturevalue("aws_endpoint")
    async with open_aws(endpoint_url=endpoint) as aws:
        yield RealWorld(aws)
