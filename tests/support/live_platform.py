"""A platform on a real endpoint with real worker processes, for tests that kill them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from snavio.aws.boto.session import Aws, open_aws
from snavio.domain.models import Grant, Key, RateLimit, Route
from snavio.embedded.testing import Installation
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.wire.canonical import canonical
from snavio.wire.events import decode_event
from snavio.wire.signing import SigningKey, framed
from snavio.wire.times import format_time

PATIENCE_SECONDS = 180.0


class WorkerProcess:
    """One worker of one service, as an operating system process with its service's own role."""

    def __init__(self, platform: Installation, service: str, log: Any, **variables: str) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SNAVIO_"))},
            **platform.environment(platform.names.role(service)),
            "SNAVIO_ACCOUNT": platform.names.account,
            # One emulator serves them all: a poll each is enough to keep every worker busy.
            "SNAVIO_POLLS": "1",
            "SNAVIO_WAIT_SECONDS": "2",
            "SNAVIO_VISIBILITY_SECONDS": "15",
            "SNAVIO_LOG_LEVEL": "warning",
            **variables,
        }
        self.service = service
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"snavio.{service}"], env=environment, stderr=log, stdout=log
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def terminate(self) -> int:
        """Ask it to drain; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class Fleet:
    """Worker processes that can be killed at random and replaced."""

    def __init__(self, platform: Installation, log: Any, **variables: str) -> None:
        self._platform = platform
        self._log = log
        self._variables = variables
        self.workers: list[WorkerProcess] = []
        self.killed = 0

    def start(self, service: str, count: int = 1) -> None:
        self.workers += [
            WorkerProcess(self._platform, service, self._log, **self._variables) for _ in range(count)
        ]

    def kill_one(self, roll: random.Random, *services: str) -> None:
        """Kill a worker in the middle of whatever it is doing, and start another."""
        victim = roll.choice([worker for worker in self.workers if worker.service in services])
        victim.kill()
        self.killed += 1
        self.workers.remove(victim)
        self.start(victim.service)

    def crashed(self) -> list[str]:
        """Workers that ended though nobody killed them."""
        return [worker.service for worker in self.workers if worker.process.poll() is not None]

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.wait(10)


class Live:
    """The platform as its operators, producers and targets see it."""

    def __init__(self, installation: Installation, aws: Aws) -> None:
        self.installation = installation
        self.names = installation.names
        self.aws = aws
        self.store = RegistryStore(aws.tables, self.names, clock=time.time)
        self._sealer = Sealer(aws.vault)
        self._seal_id = ""
        self._secrets: dict[str, SigningKey] = {}

    async def service(self, source: str) -> None:
        if not self._seal_id:
            seal = await self._sealer.new_key(self.names.secrets_key, time.time())
            await self.store.put_seal_key(seal, actor="test")
            self._seal_id = seal.id
        secret = os.urandom(32)
        self._secrets[source] = SigningKey(secret)
        sealed = self._sealer.seal(secret, seal_id=self._seal_id, source=source, version_id="hmac-v1")
        key = Key(source=source, version_id="hmac-v1", sealed=sealed, created_at=time.time())
        await self.store.put_key(key, actor="test")

    async def route(self, target: str, command: str, *sources: str, **fields: Any) -> str:
        """Register a route with a queue of its own, granted to the sources; the queue's URL."""
        sqs = await self.aws.client("sqs")
        name = f"{self.names.prefix}-target-{target}-{command}"
        url = (await sqs.create_queue(QueueName=name))["QueueUrl"]
        if "rate_limit" in fields:
            fields["rate_limit"] = RateLimit(**fields["rate_limit"])
        arn = self.names.queue_arn(name)
        route = Route(target=target, command=command, tenant="owner", queue_arn=arn, **fields)
        await self.store.put_route(route, actor="test")
        for source in sources:
            await self.store.put_grant(Grant(source=source, target=target, command=command), actor="test")
        return url

    def entry(
        self, source: str, target: str, name: str, payload: Any, command_id: str | None = None
    ) -> dict[str, str]:
        """A signed command as an entry for PutEvents."""
        command_id = command_id or str(uuid.uuid4())
        timestamp = format_time(time.time())
        frame = framed("hmac-v1", command_id, timestamp, target, name)
        signature = self._secrets[source].sign(frame, canonical(payload))
        detail = {
            "metadata": {
                "id": command_id,
                "timestamp": timestamp,
                "type": "snavio.command-sent",
                "version_id": "hmac-v1",
                "hmac": signature,
            },
            "command": {"target": target, "name": name, "payload": payload},
        }
        return {
            "EventBusName": self.names.bus,
            "Source": source,
            "DetailType": "snavio.command-sent",
            "Detail": msgspec.json.encode(detail).decode(),
        }

    async def send(self, entries: list[dict[str, str]]) -> list[str]:
        """Put commands on the bus; their ids."""
        events = await self.aws.client("events")
        for start in range(0, len(entries), 10):
            answer = await events.put_events(Entries=entries[start : start + 10])
            assert answer["FailedEntryCount"] == 0
        return [msgspec.json.decode(entry["Detail"])["metadata"]["id"] for entry in entries]

    async def told(self) -> dict[str, set[str]]:
        """What the outbox says of each command: its id, and the types of its events."""
        found: dict[str, set[str]] = {}
        async for page in self.aws.tables.scan(self.names.outbox):
            for row in page:
                event = decode_event(str(row["body"]))
                found.setdefault(getattr(event, "command_id", ""), set()).add(str(row["event_type"]))
        return found

    async def until_told(self, ids: set[str], outcomes: set[str]) -> dict[str, set[str]]:
        """Wait until every command has one of the outcomes."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                told = await self.told()
                missing = {command_id for command_id in ids if not told.get(command_id, set()) & outcomes}
                if not missing:
                    return told
                await anyio.sleep(2)

    async def drain(self, url: str) -> list[dict[str, Any]]:
        """Everything in a target's queue, each with the time SQS took it in."""
        found: list[dict[str, Any]] = []
        while batch := await self.aws.queues.receive(url, wait_seconds=1):
            found += [{**msgspec.json.decode(message.body), "sent_at": message.sent_at} for message in batch]
            await self.aws.queues.delete(url, [message.receipt for message in batch])
        return found


@asynccontextmanager
async def live(installation: Installation) -> AsyncIterator[Live]:
    """The platform, with root's rights in this process."""
    keys = installation.environment()
    before = {name: os.environ.get(name) for name in keys}
    os.environ.update(keys)
    try:
        async with open_aws(region=installation.names.region, endpoint_url=installation.endpoint_url) as aws:
            yield Live(installation, aws)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
