"""The outbox worker as real processes, on a platform of a test's own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from contextlib import AsyncExitStack

import msgspec
import pytest

from snavio.telemetry.pipeline import provision_pipeline
from snavio.wire.events import CommandDelivered, CommandName, decode_event
from snavio.wire.outbox import outbox_row
from snavio.wire.times import format_time

QUICK = {
    "SNAVIO_OUTBOX_LINGER_SECONDS": "0.2",
    "SNAVIO_OUTBOX_LEASE_SECONDS": "2",
    "SNAVIO_OUTBOX_REBALANCE_SECONDS": "0.5",
    "SNAVIO_OUTBOX_CHECKPOINT_SECONDS": "0.3",
    "SNAVIO_OUTBOX_POLL_SECONDS": "0.1",
    "SNAVIO_OUTBOX_SWEEP_SECONDS": "1",
    "SNAVIO_OUTBOX_MISSED_AFTER_SECONDS": "4",
    "SNAVIO_OUTBOX_ALERT_GATHER_SECONDS": "0.5",
    "SNAVIO_OUTBOX_ALERT_BACKOFF_SECONDS": "0.2",
    "SNAVIO_OUTBOX_ALERT_ATTEMPTS": "3",
    "SNAVIO_OUTBOX_WEBHOOK_SECONDS": "1",
    "SNAVIO_OUTBOX_WEBHOOK_ALLOW": "127.0.0.1/32",
    "SNAVIO_OUTBOX_EMAIL_FROM": "alerts@snavio.test",
    "SNAVIO_LOG_LEVEL": "warning",
}
"""Everything that waits, waits less."""


class Bench:
    """A platform with tenants' pipelines, and outbox workers to run on it."""

    def __init__(self, platform, folder):
        self.platform = platform
        self.names = platform.names
        self._folder = folder
        self._stack = AsyncExitStack()
        self._clients = {}
        self._environment = None
        self.workers = []

    async def client(self, service):
        if service not in self._clients:
            self._clients[service] = await self._stack.enter_async_context(self.platform.client(service))
        return self._clients[service]

    async def tenant(self, tenant, **settings):
        return await provision_pipeline(self.client, self.names, tenant, **settings)

    @staticmethod
    def event(tenant, kind=CommandDelivered, **fields):
        about = {
            "event_id": str(uuid.uuid4()),
            "tenant": tenant,
            "emitted_at": format_time(time.time()),
            "source": f"{tenant}/billing",
            "target": "discord-bot",
            "command": CommandName("notify-user"),
            "timestamp": format_time(time.time()),
            "command_id": str(uuid.uuid4()),
        }
        if kind is CommandDelivered:
            about |= {"path": "fast", "dispatch_latency_ms": 1.5}
        return kind(**about | fields)

    async def write(self, events):
        """Put events into the outbox as workers do; several batches at a time."""
        dynamodb = await self.client("dynamodb")
        rows = [msgspec.structs.asdict(outbox_row(event, time.time())) for event in events]

        async def put(batch):
            left = {self.names.outbox: [{"PutRequest": {"Item": _typed(row)}} for row in batch]}
            while left:
                left = (await dynamodb.batch_write_item(RequestItems=left)).get("UnprocessedItems")

        for start in range(0, len(rows), 100):
            some = rows[start : start + 100]
            await asyncio.gather(*(put(some[at : at + 25]) for at in range(0, len(some), 25)))

    async def rows_left(self):
        dynamodb = await self.client("dynamodb")
        return (await dynamodb.scan(TableName=self.names.outbox, Select="COUNT"))["Count"]

    async def received(self, tenant):
        """Takes up to ten events out of a tenant's queue."""
        sqs = await self.client("sqs")
        url = self.platform.queue_url(self.names.telemetry(tenant))
        answer = await sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        messages = answer.get("Messages", [])
        if messages:
            entries = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                for index, message in enumerate(messages)
            ]
            await sqs.delete_message_batch(QueueUrl=url, Entries=entries)
        return [decode_event(message["Body"]) for message in messages]

    def start(self, **settings):
        """A worker of its own process, with the rights of the outbox role alone."""
        if self._environment is None:
            self._environment = self.platform.environment(self.names.role("outbox"))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SNAVIO_"))},
            **self._environment,
            "SNAVIO_ACCOUNT": self.names.account,
            **QUICK,
            **settings,
        }
        with (self._folder / f"worker-{len(self.workers)}.log").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "snavio.outbox"], env=environment, stdout=log, stderr=log
            )
        self.workers.append(worker)
        return worker

    def logs(self):
        return "".join(path.read_text() for path in sorted(self._folder.glob("*.log")))

    async def until(self, check, *, seconds=30.0, every=0.05):
        """Wait until an async check gives something true, and give that."""
        deadline = time.monotonic() + seconds
        while True:
            found = await check()
            if found:
                return found
            assert time.monotonic() < deadline, f"it never happened; the workers say:\n{self.logs()[-4000:]}"
            await asyncio.sleep(every)

    async def close(self):
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait(10)
        await self._stack.aclose()


def _typed(row):
    return {
        name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in row.items()
    }


@pytest.fixture
async def bench(platform, tmp_path):
    bench = Bench(platform, tmp_path)
    try:
        yield bench
    finally:
        await bench.close()
