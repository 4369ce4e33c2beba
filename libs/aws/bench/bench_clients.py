"""Client CPU for each hot call, aiobotocore against the lean client.

Run by hand: `python libs/aws/bench/bench_clients.py [--uvloop]`. The endpoint is a process of its own that answers every
call from memory, so that what is measured is this process's CPU and nothing else's. Figures are medians of batches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from snavio.aws.boto.session import open_aws
from snavio.aws.values import Outgoing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from snavio.aws.boto.session import Aws

BODY = json.dumps({"metadata": {"id": "0" * 36}, "command": {"payload": "x" * 700}})
ENTRIES = [{"Id": str(n), "MessageId": "0" * 36, "MD5OfMessageBody": "0" * 32} for n in range(10)]
MESSAGE = {
    "MessageId": "0" * 36,
    "ReceiptHandle": "r" * 180,
    "Body": BODY,
    "Attributes": {
        "ApproximateReceiveCount": "1",
        "SentTimestamp": "1800000000000",
        "MessageGroupId": "acme",
    },
    "MessageAttributes": {"traceparent": {"StringValue": "0" * 55, "DataType": "String"}},
}
ANSWERS = {
    b"AmazonSQS.ReceiveMessage": {"Messages": [MESSAGE] * 10},
    b"AmazonSQS.SendMessageBatch": {"Successful": ENTRIES, "Failed": []},
    b"AmazonSQS.DeleteMessageBatch": {"Successful": ENTRIES, "Failed": []},
    b"AmazonSQS.ChangeMessageVisibilityBatch": {"Successful": ENTRIES, "Failed": []},
    b"DynamoDB_20120810.BatchWriteItem": {"UnprocessedItems": {}},
    b"DynamoDB_20120810.UpdateItem": {"Attributes": {"pk": {"S": "a"}, "issued": {"N": "1"}}},
}


class Canned(asyncio.Protocol):
    """The server: the same answer for every call of an operation."""

    rendered: dict[bytes, bytes] = {}  # noqa: RUF012 - filled once below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self.transport: Any = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(lines[b"content-length"]):
            return
        self.buffer = b""
        self.transport.write(self.rendered[lines[b"x-amz-target"].strip()])


async def serve() -> None:
    """Print the port and answer until standard input ends."""
    for target, answer in ANSWERS.items():
        body = json.dumps(answer).encode()
        head = (
            b"HTTP/1.1 200 OK\r\nx-amzn-RequestId: 00000000-0000-0000-0000-000000000000\r\n"
            b"Date: Wed, 18 Nov 2026 00:00:00 GMT\r\nContent-Type: application/x-amz-json-1.0\r\n"
            b"connection: keep-alive\r\ncontent-length: %d\r\n\r\n"
        )
        Canned.rendered[target.lower()] = head % len(body) + body
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


def calls(aws: Aws) -> dict[str, Callable[[], Awaitable[object]]]:
    """The hot calls, each with a full batch."""
    url = "http://127.0.0.1/000000000000/queue"
    outgoing = [Outgoing(BODY, group="acme", attributes={"traceparent": "0" * 55}) for _ in range(10)]
    receipts = ["r" * 180] * 10
    items: list[Any] = [
        {
            "pk": f"acme#{n}",
            "sk": "0" * 36,
            "event": BODY,
            "type": "snavio.command.delivered",
            "expires_at": 1_800_000_000,
        }
        for n in range(25)
    ]
    return {
        "receive 10": lambda: aws.queues.receive(url, wait_seconds=0),
        "send 10": lambda: aws.queues.send(url, outgoing),
        "delete 10": lambda: aws.queues.delete(url, receipts),
        "visibility 10": lambda: aws.queues.set_visibility(url, [(receipt, 30) for receipt in receipts]),
        "put_batch 25": lambda: aws.tables.put_batch("table", items),
    }


async def cost(call: Callable[[], Awaitable[object]], *, rounds: int, each: int) -> float:
    """Median CPU of one call in microseconds, with four in flight as a worker has."""

    async def some() -> None:
        for _ in range(each // 4):
            await call()

    samples: list[float] = []
    for _ in range(rounds + 1):
        before = time.process_time()
        await asyncio.gather(*(some() for _ in range(4)))
        samples.append((time.process_time() - before) / (each // 4 * 4))
    return statistics.median(samples[1:]) * 1e6


async def measure(port: int) -> None:
    """Print one row a call."""
    endpoint = f"http://127.0.0.1:{port}"
    rows: dict[str, list[float]] = {}
    for lean in (False, True):
        async with open_aws(endpoint_url=endpoint, region="eu-central-1", lean=lean) as aws:
            for name, call in calls(aws).items():
                each = 2000 if lean else 200
                rows.setdefault(name, []).append(await cost(call, rounds=5, each=each))
    print(f"{'µs of client CPU a call':<26}{'aiobotocore':>12}{'lean':>8}{'ratio':>8}")
    for name, (boto, small) in rows.items():
        print(f"{name:<26}{boto:>12.0f}{small:>8.0f}{boto / small:>7.1f}×")
    three = ("receive 10", "send 10", "delete 10")
    boto, small = (sum(rows[name][column] for name in three) / 10 for column in (0, 1))
    print(f"{'a message, all three':<26}{boto:>12.1f}{small:>8.1f}{boto / small:>7.1f}×")


def main() -> None:
    """Start the server in another process and measure against it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--uvloop", action="store_true", help="measure on uvloop instead of asyncio's own loop"
    )
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")  # noqa: S106 - nobody checks them
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:  # noqa: S603 - ourselves
        port = int(server.stdout.readline())  # pyright: ignore[reportOptionalMemberAccess]
        if arguments.uvloop:
            import uvloop  # noqa: PLC0415 - optional here

            uvloop.run(measure(port))
        else:
            asyncio.run(measure(port))


if __name__ == "__main__":
    main()
