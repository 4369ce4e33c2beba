"""From real workers to a ban: they count what they deliver, the audit finds who takes too much, and workers act on it."""

from __future__ import annotations

import time
from collections import Counter

import anyio
import msgspec
import pytest
from live_platform import Fleet, live

from snavio.domain.models import Ban, FairnessPolicy, Sensitivity
from snavio.registry.rows import decode_row
from snavio.spark.audit import StoreFeed, audit
from snavio.spark.cli import registry_sink
from snavio.spark.dominance import Thresholds
from snavio.spark.folders import open_folder
from snavio.spark.lake import Lake
from snavio.spark.plan import Lateness
from snavio.spark.store import Store
from snavio.wire.events import AbuseDetected, CommandEscalated, decode_event

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(300)]

TARGET, COMMAND = "discord-bot", "go"
ABUSER = "acme/flood"
HONEST = ("acme/billing", "globex/mail", "initech/print")
DELIVERED = {"snavio.command.delivered"}
# One minute is all these workers live, so one minute has to be enough; a ban must outlast the rest of the test.
LIMITS = Thresholds(min_minutes=1, min_dispatches=30, ban_window_seconds=3600)


@pytest.fixture
def fleet(platform, tmp_path):
    with (tmp_path / "workers.log").open("w") as log:
        started = Fleet(platform, log)
        yield started
        started.stop()


def traffic(world, rounds):
    """The abuser sends nine in ten, evenly among the others."""
    senders = [ABUSER] * 9 + [HONEST[0]] + [ABUSER] * 9 + [HONEST[1]] + [ABUSER] * 9 + [HONEST[2]]
    return [world.entry(source, TARGET, COMMAND, {"n": n}) for n in range(rounds) for source in senders]


def run_audit(spark, platform, lake, monkeypatch):
    """A little later, when what the workers wrote has settled; with the auditor's rights and no others."""
    names = platform.names
    sink = registry_sink(names, region=names.region, endpoint_url=platform.endpoint_url)
    with monkeypatch.context() as patched:
        for name, value in platform.environment(names.role("auditor")).items():
            patched.setenv(name, value)
        return audit(
            spark,
            StoreFeed(spark, Store(names.stats, names.region, platform.endpoint_url)),
            lake,
            sink,
            now=time.time() + 90,
            limits=LIMITS,
            lateness=Lateness(windows=5),
        )


async def all_rows(world, table):
    return [row async for page in world.aws.tables.scan(table) for row in page]


async def events_of_type(world, kind):
    events = [decode_event(str(row["body"])) for row in await all_rows(world, world.names.outbox)]
    return [event for event in events if isinstance(event, kind)]


async def test_whoever_floods_a_target_is_banned_by_the_audit_and_then_served_by_slow_alone(
    spark, platform, fleet, tmp_path, monkeypatch
):
    lake = Lake(open_folder(str(tmp_path / "lake")))
    async with live(platform) as world:
        for source in (ABUSER, *HONEST):
            await world.service(source)
        # What a worker does about dominance by itself is left out: here it is the audit that has to find it.
        alone = FairnessPolicy(enabled=False)
        # And on a busy machine no grant should expire meanwhile: what goes to slow has to go there for the ban.
        await world.route(TARGET, COMMAND, ABUSER, *HONEST, fairness=alone, sensitivity=Sensitivity.LOW)
        for service in ("shield", "fast", "fast", "slow"):
            fleet.start(service)
        entries = traffic(world, 4)
        await world.until_told(set(await world.send(entries)), DELIVERED)
        assert [worker.terminate() for worker in fleet.workers] == [0, 0, 0, 0]
        fleet.workers = []

        first = await anyio.to_thread.run_sync(run_audit, spark, platform, lake, monkeypatch)

        assert (first.banned, first.malformed) == ([ABUSER], 0)
        counted = lake.minutes.read(spark, first.start, first.end).groupBy("source").sum("count").collect()
        assert {row[0]: row[1] for row in counted} == {ABUSER: 108, **dict.fromkeys(HONEST, 4)}
        entries_held = map(decode_row, await all_rows(world, world.names.registry))
        assert [entry.source for entry in entries_held if isinstance(entry, Ban)] == [ABUSER]
        told = await events_of_type(world, AbuseDetected)
        assert sorted((event.tenant, event.source) for event in told) == [("acme", ABUSER), ("owner", ABUSER)]

        again = await anyio.to_thread.run_sync(run_audit, spark, platform, lake, monkeypatch)
        assert (again.changed, again.events) == (0, 0)
        assert len(await events_of_type(world, AbuseDetected)) == 2

        for service in ("shield", "fast", "slow"):
            fleet.start(service)
        entries = traffic(world, 1)
        source_of = {
            msgspec.json.decode(entry["Detail"])["metadata"]["id"]: entry["Source"] for entry in entries
        }
        await world.until_told(set(await world.send(entries)), DELIVERED)
        # Slow may report a delivery before fast has reported the escalation that led to it; not once fast has ended.
        assert [worker.terminate() for worker in fleet.workers] == [0, 0, 0]
        fleet.workers = []
        escalated = Counter(
            (source_of[event.command_id], event.reason)
            for event in await events_of_type(world, CommandEscalated)
            if event.command_id in source_of
        )
    assert escalated == {(ABUSER, "warm_path_ban"): 27}
