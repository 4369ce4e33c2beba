"""Monitors as real processes with their role's rights alone: one leads, another takes over, routes are watched."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from snavio.aws.boto.session import open_aws
from snavio.control.health import verdict_key
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Route
from snavio.registry.keeper import Keeper
from snavio.registry.sealing import Sealer
from snavio.registry.snapshot_parts import Kind
from snavio.registry.snapshot_pointer import decode_pointer, pointer_key
from snavio.registry.snapshot_signing import KmsSigner
from snavio.registry.snapshots import SnapshotPolicy, SnapshotReader
from snavio.registry.store import RegistryStore

pytestmark = pytest.mark.aws

QUICK = {
    "SNAVIO_MONITOR_LEASE_SECONDS": "2",
    "SNAVIO_MONITOR_WATCH_SECONDS": "0.3",
    "SNAVIO_MONITOR_SNAPSHOT_SECONDS": "0.5",
    "SNAVIO_MONITOR_UPKEEP_SECONDS": "0.5",
    "SNAVIO_MONITOR_CLOUDWATCH_METRICS": "false",
    "SNAVIO_MONITOR_QUEUE_AGES": "false",
}


class Fleet:
    def __init__(self, platform, aws, folder):
        self.platform = platform
        self.names = platform.names
        self.aws = aws
        self.store = RegistryStore(aws.tables, self.names, clock=time.time)
        self._folder = folder
        self._environment = platform.environment(self.names.role("monitor"))
        self.monitors = {}

    def start(self, name):
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "SNAVIO_"))}
        environment = {
            **kept,
            **self._environment,
            "SNAVIO_ACCOUNT": self.names.account,
            "SNAVIO_WORKER_ID": name,
            **QUICK,
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            self.monitors[name] = subprocess.Popen(
                [sys.executable, "-m", "snavio.monitor"], env=environment, stdout=log, stderr=log
            )

    def logs(self):
        return "".join(path.read_text() for path in sorted(self._folder.glob("*.log")))

    async def until(self, check, *, seconds=40.0):
        deadline = time.monotonic() + seconds
        while not (found := await check()):
            assert time.monotonic() < deadline, f"it never happened; the monitors say:\n{self.logs()[-4000:]}"
            await asyncio.sleep(0.05)
        return found

    async def leader(self):
        row = await self.aws.tables.get(self.names.leases, {"pk": "leader#monitor"})
        return row and row["until"] > time.time() and row["owner"]

    async def number(self):
        published = await self.aws.tables.get(self.names.changelog, {"pk": "snapshot", "seq": 0})
        return published["number"] if published else 0

    async def health(self, target, command):
        row = await self.aws.tables.get(self.names.control, verdict_key(target, command))
        return row and json.loads(row["body"])["status"]

    async def told(self):
        rows = [row async for page in self.aws.tables.scan(self.names.outbox) for row in page]
        events = [json.loads(row["body"]) for row in rows]
        return [
            (event["previous"], event["health"])
            for event in sorted(events, key=lambda event: event["emitted_at"])
            if event["event"] == "snavio.route.health_changed"
        ]

    def close(self):
        for monitor in self.monitors.values():
            if monitor.poll() is None:
                monitor.kill()
            monitor.wait(10)


@pytest.fixture
async def fleet(platform, tmp_path):
    async with open_aws(
        session=platform.session, region=platform.names.region, endpoint_url=platform.endpoint_url
    ) as aws:
        fleet = Fleet(platform, aws, tmp_path)
        try:
            yield fleet
        finally:
            fleet.close()


async def test_when_the_leader_is_killed_another_takes_over_and_goes_on_publishing(fleet):
    fleet.start("one")
    fleet.start("two")
    first = await fleet.until(fleet.leader)
    await fleet.until(fleet.number)
    fleet.monitors[first].send_signal(signal.SIGKILL)
    fleet.monitors[first].wait(10)
    published = await fleet.number()

    async def taken_over():
        leader = await fleet.leader()
        return leader and leader != first

    await fleet.until(taken_over)

    async def went_on():
        return await fleet.number() > published + 1

    await fleet.until(went_on)
    row = await fleet.aws.tables.get(fleet.names.leases, {"pk": "leader#monitor"})
    assert row["term"] == 2

    # Told to stop, a leader leaves at once rather than letting its lease run out.
    second = fleet.monitors[row["owner"]]
    second.terminate()
    assert second.wait(20) == 0
    assert not await fleet.leader()


async def test_a_route_turns_unhealthy_and_back_and_workers_start_from_what_was_published(fleet):
    names = fleet.names
    async with fleet.platform.client("sqs") as sqs:
        url = (await sqs.create_queue(QueueName=f"{names.prefix}-bot"))["QueueUrl"]
        for target, queue, drain in (("bot", "bot", 1), ("lost", "nowhere", 300)):
            route = Route(
                target=target,
                command="notify",
                tenant="acme",
                queue_arn=names.queue_arn(f"{names.prefix}-{queue}"),
                expected_drain_seconds=drain,
            )
            await fleet.store.put_route(route, actor="test")
        fleet.start("one")

        def turned(target, status):
            async def check():
                return await fleet.health(target, "notify") == status

            return check

        await fleet.until(turned("bot", "healthy"))
        await fleet.until(turned("lost", "unreachable"))
        await sqs.send_message(QueueUrl=url, MessageBody="x")
        await fleet.until(turned("bot", "unhealthy"))
        await sqs.purge_queue(QueueUrl=url)
        await fleet.until(turned("bot", "healthy"))
    told = await fleet.told()
    assert ("unknown", "unreachable") in told
    assert told[-1][1] == "healthy"
    assert any(health == "unhealthy" for _, health in told)

    seq = await fleet.store.last_seq()

    async def published():
        try:
            stored = await fleet.aws.objects.get(names.bucket, pointer_key(Kind.ROUTING))
        except Exception:  # noqa: BLE001 - not there yet
            return False
        return decode_pointer(stored.body).pointer.seq == seq

    await fleet.until(published)
    for role, with_keys in (("fast", False), ("shield", True)):
        assert await _starts_from_snapshot(fleet.platform, role, with_keys=with_keys)


async def _starts_from_snapshot(platform, role, *, with_keys):
    """Whether a worker with this role's rights alone may and does load the snapshot."""
    names = platform.names
    keys = platform.credentials(names.role(role))
    session = type(platform.session)()
    session.set_credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    async with open_aws(session=session, region=names.region, endpoint_url=platform.endpoint_url) as aws:
        seen = Seen()
        reader = SnapshotReader(
            aws.objects,
            aws.tables,
            names,
            KmsSigner(aws.client, names.snapshots_key),
            SnapshotPolicy(),
            clock=time.time,
            observer=seen,
        )
        keeper = Keeper(
            aws.tables,
            names,
            Sealer(aws.vault) if with_keys else None,
            ttls=TtlPolicy(),
            clock=time.time,
            observer=seen,
            snapshots=reader,
        )
        await keeper.load()
        assert seen.refused == []
        return ("bot", "notify") in keeper.registry.routes


class Seen:
    def __init__(self):
        self.refused = []

    def loaded(self, **facts):
        pass

    def snapshot_loaded(self, pointer):
        pass

    def snapshot_refused(self, kind, reason, detail):
        self.refused.append((kind, reason, detail))
