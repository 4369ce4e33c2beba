"""Forwarders without governance: receive ten, send ten, delete ten. The limit of any dispatcher built on the same client.

`recording` makes the very calls a governed dispatcher has to make, with what they have to carry: the attributes of a
delivered message, and a row in an outbox for each.

python bench/forwarders.py lean|recording|aiobotocore <endpoint> <queue> <target queue>
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvloop
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession

from snavio.aws.boto.session import open_aws
from snavio.aws.values import Item, Outgoing, Received

LOOPS = 8
"""As many batches under way as a worker handles at once."""
WAIT_SECONDS = 10
ROWS = 20
ATTRIBUTES = {
    "snavio.id": "c0ffee00-0000-0000-0000-000000000000",
    "snavio.source": "tenant-1/service-1",
    "snavio.command": "notify-user",
}
ROW: Item = {
    "pk": "tenant-1#0",
    "tenant": "tenant-1",
    "event_type": "snavio.command.delivered",
    "source": "tenant-1/service-1",
    "body": "x" * 430,
    "written_at": 1_800_000_000_000,
    "expires_at": 1_801_000_000,
}


async def forward_lean(endpoint: str, queue: str, target: str) -> None:
    """On the client that Snavio's workers use."""
    async with open_aws(region="us-east-1", endpoint_url=endpoint) as aws:

        async def forward() -> None:
            while True:
                batch = await aws.queues.receive(queue, wait_seconds=WAIT_SECONDS, visibility_seconds=30)
                if batch:
                    await aws.queues.send(target, [Outgoing(message.body) for message in batch])
                    await aws.queues.delete(queue, [message.receipt for message in batch])

        await asyncio.gather(*(forward() for _ in range(LOOPS)))


async def forward_recording(endpoint: str, queue: str, target: str) -> None:
    """On the same client, with attributes and a row for each."""
    async with open_aws(region="us-east-1", endpoint_url=endpoint) as aws:

        async def forward() -> None:
            while True:
                batch: list[Received] = []
                # As many as fit one write of rows.
                while len(batch) < ROWS:
                    received = await aws.queues.receive(
                        queue, max_messages=min(10, ROWS - len(batch)), wait_seconds=1, visibility_seconds=30
                    )
                    if not received:
                        break
                    batch += received
                for start in range(0, len(batch), 10):
                    part = batch[start : start + 10]
                    await aws.queues.send(target, [Outgoing(one.body, None, ATTRIBUTES) for one in part])
                await aws.tables.put_batch("outbox", [{**ROW, "sk": one.id} for one in batch])
                for start in range(0, len(batch), 10):
                    await aws.queues.delete(queue, [one.receipt for one in batch[start : start + 10]])

        await asyncio.gather(*(forward() for _ in range(LOOPS)))


async def forward_aiobotocore(endpoint: str, queue: str, target: str) -> None:
    """On the client one would reach for."""
    config = AioConfig(max_pool_connections=2 * LOOPS)
    session: Any = AioSession()
    async with session.create_client(
        "sqs", region_name="us-east-1", endpoint_url=endpoint, config=config
    ) as sqs:

        async def forward() -> None:
            while True:
                answer = await sqs.receive_message(
                    QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=WAIT_SECONDS
                )
                if batch := answer.get("Messages", []):
                    entries = [{"Id": str(n), "MessageBody": one["Body"]} for n, one in enumerate(batch)]
                    await sqs.send_message_batch(QueueUrl=target, Entries=entries)
                    done = [
                        {"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(batch)
                    ]
                    await sqs.delete_message_batch(QueueUrl=queue, Entries=done)

        await asyncio.gather(*(forward() for _ in range(LOOPS)))


if __name__ == "__main__":
    kind, *addresses = sys.argv[1:]
    kinds = {"lean": forward_lean, "recording": forward_recording, "aiobotocore": forward_aiobotocore}
    uvloop.run(kinds[kind](*addresses))
