"""Forwarders without governance: receive ten, send ten, delete ten. The limit of any dispatcher built on the same client.

python bench/forwarders.py lean|aiobotocore <endpoint> <queue> <target queue>
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvloop
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession

from snavio.aws.boto.session import open_aws
from snavio.aws.values import Outgoing

LOOPS = 8
"""As many batches under way as a worker handles at once."""
WAIT_SECONDS = 10


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
    uvloop.run((forward_lean if kind == "lean" else forward_aiobotocore)(*addresses))
