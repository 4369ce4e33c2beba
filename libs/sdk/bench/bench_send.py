"""`send` against bare PutEvents in batches of ten, side by side, on the same endpoint.

Run by hand: `python libs/sdk/bench/bench_send.py [--embedded] [--commands N]`. By default the endpoint is a process of its
own that answers from memory, so that the client is what is measured; with `--embedded` it is the embedded AWS, which is
the limit itself. The bare client is aiobotocore as it comes, with the same entries made beforehand: no canonical form, no
signature, no batching to do, nobody to answer. Rounds alternate; figures are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from aiobotocore.session import AioSession

from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.bus import open_bus
from snavio.sdk.outgoing import detail, prepare
from snavio.sdk.producer import Command, Producer, ProducerOptions
from snavio.sdk.tenant_config import TenantConfig, choose_signer
from snavio.sdk.testing.registry import MemoryRegistry
from snavio.wire.times import format_time

SOURCE = "acme/billing"
IN_FLIGHT = 8
PAYLOAD = {
    "user": 42,
    "text": "Your invoice is paid. " * 12,
    "amount": 19.99,
    "lines": [{"sku": f"A-{n}", "count": n, "gift": False} for n in range(4)],
}


class Canned(asyncio.Protocol):
    """A bus that takes whatever comes."""

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
        entries = body.count(b'"DetailType"')
        answer = json.dumps({"FailedEntryCount": 0, "Entries": [{"EventId": "0" * 36}] * entries}).encode()
        head = (
            b"HTTP/1.1 200 OK\r\nx-amzn-RequestId: 0\r\nContent-Type: application/x-amz-json-1.1\r\n"
            b"connection: keep-alive\r\ncontent-length: %d\r\n\r\n"
        )
        self.transport.write(head % len(answer) + answer)


async def serve() -> None:
    """Print the address and answer until standard input ends."""
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0)
    print(
        json.dumps({"aws_endpoint_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}), flush=True
    )
    await asyncio.to_thread(sys.stdin.read)


class Origin:
    """A configuration from memory."""

    def __init__(self) -> None:
        registry = MemoryRegistry()
        registry.add_key(SOURCE, previous_ends_at=0)
        self.config = TenantConfig(tenant="acme", services=registry.services_of("acme"), bus="bench")

    async def fetch(self) -> TenantConfig:
        """It."""
        return self.config


@asynccontextmanager
async def opened(endpoint: str) -> AsyncGenerator[dict[str, Callable[[int], Awaitable[None]]]]:
    """The ways of sending n commands."""
    session = AioSession()
    session.set_credentials("test", "test")
    aws = AwsOptions(region="us-east-1", endpoint_url=endpoint, session=session)
    async with AsyncExitStack() as stack:
        client: Any = await stack.enter_async_context(
            session.create_client("events", region_name="us-east-1", endpoint_url=endpoint)
        )
        origin = Origin()

        def bus(config: TenantConfig, source: str) -> Any:
            return open_bus(config, source, aws, time.time, connections=IN_FLIGHT)

        producer = await stack.enter_async_context(
            Producer("", "", origin=origin, opened=bus, options=ProducerOptions(in_flight=IN_FLIGHT))
        )
        signer = choose_signer(origin.config, SOURCE, time.time())
        ready = detail(prepare("discord-bot", "notify-user", PAYLOAD), signer, format_time(time.time()))
        entry = {
            "EventBusName": "bench",
            "Source": SOURCE,
            "DetailType": "snavio.command-sent",
            "Detail": ready,
        }

        async def bare(count: int) -> None:
            async def some() -> None:
                for _ in range(count // 10 // IN_FLIGHT):
                    await client.put_events(Entries=[entry] * 10)

            await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))

        async def send(count: int) -> None:
            async def some() -> None:
                for _ in range(count // 100):
                    await producer.send("discord-bot", "notify-user", PAYLOAD)

            await asyncio.gather(*(some() for _ in range(100)))

        async def send_many(count: int) -> None:
            await producer.send_many([Command("discord-bot", "notify-user", PAYLOAD) for _ in range(count)])

        yield {"bare PutEvents": bare, "send": send, "send_many": send_many}


async def measure(endpoint: str, commands: int, rounds: int) -> None:
    """Print one row for each way."""
    async with opened(endpoint) as ways:
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, way in ways.items():
                wall, cpu = time.perf_counter(), time.process_time()
                await way(commands)
                spent = (time.perf_counter() - wall, time.process_time() - cpu)
                if number:  # the first round warms up
                    figures[name].append(spent)
    print(f"{'':<16}{'commands/s':>12}{'µs CPU each':>13}{'wall, × bare':>14}{'CPU, × bare':>13}")
    bare_wall, bare_cpu = (statistics.median(part) for part in zip(*figures["bare PutEvents"], strict=True))
    for name, spent in figures.items():
        wall, cpu = (statistics.median(part) for part in zip(*spent, strict=True))
        print(
            f"{name:<16}{commands / wall:>12.0f}{cpu / commands * 1e6:>13.1f}"
            f"{wall / bare_wall:>14.2f}{cpu / bare_cpu:>13.2f}"
        )


def main() -> None:
    """Start the endpoint as a process of its own and measure against it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--embedded", action="store_true", help="measure on the embedded AWS")
    parser.add_argument("--commands", type=int, default=4000, help="how many in a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return
    with tempfile.TemporaryDirectory() as folder:
        embedded = ["-m", "snavio.embedded.aws", "--port", "0", "--lifeline", "--data-dir", folder]
        command = embedded if arguments.embedded else [str(Path(__file__)), "--serve"]
        with subprocess.Popen(  # noqa: S603 - this very program, or the embedded AWS
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            try:
                endpoint = json.loads((server.stdout or sys.stdin).readline())["aws_endpoint_url"]
                asyncio.run(measure(endpoint, arguments.commands, arguments.rounds))
            finally:
                if server.stdin:
                    server.stdin.close()


if __name__ == "__main__":
    main()
