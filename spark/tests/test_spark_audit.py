"""The audit on the embedded AWS: from items in the store to rollups, bans and events, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
import uuid

import msgspec
import pytest

from snavio.aws.boto.session import open_aws
from snavio.domain.models import Ban, BanMode, Route
from snavio.registry.rows import decode_row
from snavio.registry.store import RegistryStore
from snavio.spark.audit import StoreFeed, audit, compact
from snavio.spark.cli import registry_sink
from snavio.spark.clients import client_of
from snavio.spark.folders import open_folder
from snavio.spark.lake import Lake
from snavio.spark.plan import Lateness
from snavio.spark.source import read_counts, read_items
from snavio.spark.store import Store, write_items
from snavio.spark.synthetic import Abuser, Spec, arrivals, worker_rows
from snavio.spark.synthetic_files import FileFeed, write_feed
from snavio.wire.events import decode_event, derived_id
from snavio.wire.names import Names
from snavio.wire.stats import DISPATCHED, SHARDS, StatRow, encode_window, shard_of

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(600)]

START = 1_763_467_200
NOW = START + 2 * 60 + 30
ABUSER = "tenant-4/service-2"
SPEC = Spec(
    start=START,
    windows=2,
    workers=3,
    tenants=6,
    targets=3,
    rows_a_window=120,
    abusers=(Abuser(ABUSER, ("target-1",), 5.0),),
)
LATENESS = Lateness(windows=2)


class Platform:
    """The tables the audit meets, under a prefix of their own."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.names = Names(prefix=f"t{uuid.uuid4().hex[:8]}")
        self.store = Store(self.names.stats, "us-east-1", endpoint)
        self.sink = registry_sink(self.names, region="us-east-1", endpoint_url=endpoint)
        client = client_of("dynamodb", "us-east-1", endpoint)
        tables = {
            self.names.stats: "sk",
            self.names.registry: "sk",
            self.names.outbox: "sk",
            self.names.bans: "sk",
            self.names.changelog: "seq",
        }
        for table, sort in tables.items():
            client.create_table(
                TableName=table,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": sort, "KeyType": "RANGE"},
                ],
                AttributeDefinitions=[
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": sort, "AttributeType": "N" if sort == "seq" else "S"},
                ],
            )
        route = Route(
            target="target-1", command="command-0", tenant="owner", queue_arn="arn:aws:sqs:us-east-1:0:q"
        )
        self.run(
            lambda tables: RegistryStore(tables, self.names, clock=lambda: 0.0).put_route(route, actor="test")
        )

    def run(self, work):
        async def connected():
            async with open_aws(region="us-east-1", endpoint_url=self.endpoint) as aws:
                return await work(aws.tables)

        return asyncio.run(connected())

    def audit(self, spark, lake, *, now=NOW, sink=None):
        return audit(spark, StoreFeed(spark, self.store), lake, sink or self.sink, now=now, lateness=LATENESS)

    def publish(self):
        async def remove(tables):
            for row in [item async for page in tables.scan(self.names.outbox) for item in page]:
                await tables.delete(self.names.outbox, {"pk": row["pk"], "sk": row["sk"]})

        self.run(remove)

    def consequences(self):
        """Bans and outbox rows as they stand, and how often the registry changed."""

        async def look(tables):
            rows = [item async for page in tables.scan(self.names.registry) for item in page]
            events = [
                decode_event(item["body"]) async for page in tables.scan(self.names.outbox) for item in page
            ]
            changes = await RegistryStore(tables, self.names, clock=lambda: 0.0).last_seq()
            bans = [entry for entry in map(decode_row, rows) if isinstance(entry, Ban)]
            return bans, sorted(events, key=lambda event: event.event_id), changes

        return self.run(look)


@pytest.fixture
def platform(aws_endpoint, spark):
    return Platform(aws_endpoint)


@pytest.fixture
def lake(tmp_path):
    return Lake(open_folder(str(tmp_path / "lake")))


def sums(spark, lake):
    rows = lake.minutes.read(spark, START - 3600, START + 3600).collect()
    return {tuple(row)[:7]: row["count"] for row in rows}


def expected_sums(spec, *, workers=None, windows=None):
    total = {}
    for number in range(spec.workers) if workers is None else workers:
        for window in range(START, START + spec.windows * 60, 60) if windows is None else windows:
            for row in worker_rows(spec, number, window):
                key = (
                    window,
                    row.source,
                    row.target,
                    row.command,
                    spec.service(number),
                    row.outcome,
                    row.bucket,
                )
                total[key] = total.get(key, 0) + row.count
    return total


def test_the_abuser_is_banned_and_told_and_nobody_else_whatever_is_late_repeated_or_malformed(
    spark, platform, lake
):
    items = [arrival.item for arrival in arrivals(SPEC)]
    late = [item for item in items if item.worker == SPEC.worker(2) and item.window == START]
    broken = msgspec.structs.replace(items[0], sk="broken#0", worker="broken", rows=b"\x01junk")
    huge = msgspec.structs.replace(items[0], sk="huge#0", worker="huge", row_count=2**63 - 1)
    write_items(platform.store, [item for item in items if item not in late] + [broken, huge] + items[:4])

    first = platform.audit(spark, lake)

    assert (first.banned, first.malformed, first.behind) == ([ABUSER], 2, 0)
    bans, events, changes = platform.consequences()
    assert bans == [Ban(source=ABUSER, mode=BanMode.WARM, until=float(START + 900), reason=bans[0].reason)]
    assert {event.tenant for event in events} == {"tenant-4", "owner"}
    assert {event.event_id for event in events} == {
        derived_id("abuse", ABUSER, str(START), tenant) for tenant in ("tenant-4", "owner")
    }
    assert events[0].affected_targets == ["target-1"]
    assert events[0].total_violations == 2
    aside = {row["item"]: row for row in lake.faults.read(spark, START, START + 60).collect()}
    assert aside.keys() == {"broken#0", "huge#0"}
    assert json.loads(aside["huge#0"]["head"])["row_count"] == 2**63 - 1
    assert bytes(aside["broken#0"]["raw"]) == b"\x01junk"

    again = platform.audit(spark, lake)
    assert (again.changed, again.events) == (0, 0)
    assert platform.consequences() == (bans, events, changes)

    # Rows leave the outbox as they are published; more of the same ban window is still nothing new.
    platform.publish()
    write_items(platform.store, late)
    corrected = platform.audit(spark, lake)
    assert corrected.changed == 1
    assert corrected.banned == [ABUSER]
    assert sums(spark, lake) == expected_sums(SPEC)
    assert platform.consequences() == (bans, [], changes)


def files_of(lake):
    """How many files of each table count."""
    tables = (lake.minutes, lake.feed, lake.faults, lake.abuse)
    return {table.name: len(table.select(START, START + 3600).files) for table in tables}


def test_a_commit_of_few_rows_is_few_files_and_an_hour_that_is_over_is_one_of_each(spark, platform, lake):
    items = [arrival.item for arrival in arrivals(SPEC)]
    assert len({item.shard for item in items}) > 1
    broken = [msgspec.structs.replace(item, sk=f"b#{i}", rows=b"") for i, item in enumerate(items)]
    for i in range(2):
        write_items(platform.store, [item for item in items + broken if item.window == START + 60 * i])
        platform.audit(spark, lake, now=NOW - 60 * (1 - i))
    assert {files_of(lake)[name] for name in ("feed", "faults")} == {2}
    before = sums(spark, lake)
    compact(spark, lake, START + 7200, now=NOW)
    assert files_of(lake) == {"minutes": 1, "feed": 1, "faults": 1, "abuse": 1}
    assert sums(spark, lake) == before
    assert lake.faults.read(spark, START, START + 3600).count() == len(broken)


@pytest.mark.timeout(120)
def test_minutes_in_which_nobody_did_anything_are_audited_like_others(spark, platform, lake):
    for number, worker in enumerate(("fast-1", "fast-2", "slow-1")):
        for sequence in range(2):
            item = encode_window(
                [], worker=worker, service=worker[:4], window=START + 60 * sequence, sequence=sequence
            )
            write_items(platform.store, item)
        done = platform.audit(spark, lake)
        assert (done.changed, done.items, done.rows, done.malformed) == (2, 2 * (number + 1), 0, 0)
    assert lake.minutes.fingerprints(START, START + 120).keys() == {START, START + 60}
    assert lake.feed.read(spark, START, START + 120).count() == 6
    assert sums(spark, lake) == {}
    assert platform.audit(spark, lake).changed == 0
    assert platform.consequences()[:2] == ([], [])


class Stopped(Exception):  # noqa: N818
    """The process ended here."""


class StoppingSink:
    def __init__(self, sink, *, after):
        self._sink, self._after = sink, after

    def owners(self, targets):
        return self._sink.owners(targets)

    def apply(self, bans, events, *, now):
        if self._after:
            self._sink.apply(bans, events, now=now)
        raise Stopped

    def lift(self, bans, *, now):
        raise AssertionError("nothing was banned")


def test_a_run_that_stops_around_its_consequences_is_made_up_for_by_the_next(spark, platform, lake):
    write_items(platform.store, [arrival.item for arrival in arrivals(SPEC)])
    with pytest.raises(Stopped):
        platform.audit(spark, lake, sink=StoppingSink(platform.sink, after=False))
    assert platform.consequences()[:2] == ([], [])
    with pytest.raises(Stopped):
        platform.audit(spark, lake, sink=StoppingSink(platform.sink, after=True))
    bans, events, changes = platform.consequences()
    assert {event.tenant for event in events} == {"tenant-4", "owner"}
    # Rows leave the outbox as they are published: what was told must be known all the same.
    platform.publish()
    made_up = platform.audit(spark, lake, now=NOW + 5)
    assert (made_up.banned, made_up.events) == ([ABUSER], 0)
    assert platform.consequences() == (bans, [], changes)


def late_item(source, count):
    """A worker's minute that turns who dominates."""
    row = StatRow(source, "target-1", "command-0", DISPATCHED, 40, count)
    (item,) = encode_window([row], worker=f"fast-late-{count}", service="fast", window=START, sequence=0)
    return item


def test_what_comes_late_lifts_a_ban_and_places_it_again_without_telling_twice(spark, platform, lake):
    write_items(platform.store, [arrival.item for arrival in arrivals(SPEC)])
    assert platform.audit(spark, lake).banned == [ABUSER]
    (ban,), _, _ = platform.consequences()
    platform.publish()

    write_items(platform.store, [late_item("tenant-0/service-0", 50_000)])
    lifted = platform.audit(spark, lake)
    assert (lifted.banned, lifted.lifted, lifted.abusers) == ([], [ABUSER], [])
    assert platform.consequences()[0] == []

    write_items(platform.store, [late_item(ABUSER, 400_000)])
    again = platform.audit(spark, lake)
    assert (again.banned, again.lifted, again.events) == ([ABUSER], [], 0)
    assert platform.consequences()[:2] == ([ban], [])


KILLED = """
    import json, os, signal, sys
    from pathlib import Path
    from snavio.spark import audit, folders, lake, session, synthetic_files, table

    root, feed, now, quick = sys.argv[1:]
    commit = table.LakeTable.commit

    def killed(self, staged, *, now):
        if self.name == "minutes":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self, staged, now=now)

    table.LakeTable.commit = killed
    spark = session.open_session(master="local[2]", memory="1g", more=json.loads(quick))
    late, feed = audit.Lateness(windows=2), synthetic_files.FileFeed(spark, Path(feed))
    audit.audit(spark, feed, lake.Lake(folders.open_folder(root)), None, now=float(now), lateness=late)
"""


class RecordingSink:
    def __init__(self):
        self.banned = []

    def owners(self, _):
        return {}

    def apply(self, bans, events, *, now):
        self.banned += [ban.source for ban in bans]
        return len(events)


def test_a_run_killed_between_data_and_manifest_leaves_the_lake_as_it_was_and_is_done_again(
    spark, lake, tmp_path, quick
):
    feed, sink = FileFeed(spark, tmp_path / "feed"), RecordingSink()
    write_feed(SPEC, tmp_path / "feed")
    arguments = [str(tmp_path / "lake"), str(tmp_path / "feed"), str(NOW), json.dumps(quick)]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), *arguments], check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert list((tmp_path / "lake" / "minutes").rglob("*.parquet"))
    assert sums(spark, lake) == {}
    audit(spark, feed, lake, sink, now=NOW, lateness=LATENESS)
    assert sums(spark, lake) == expected_sums(SPEC)
    assert sink.banned == [ABUSER]


def test_the_source_reads_a_partition_a_shard_and_only_what_is_asked_for(spark, platform):
    items = [arrival.item for arrival in arrivals(SPEC)]
    odd = msgspec.structs.replace(items[0], sk="odd#0", sequence=2**80)
    write_items(platform.store, [*items, odd])
    frame = read_items(spark, platform.store, [START, START + 60])
    assert frame.rdd.getNumPartitions() == 2 * SHARDS
    rows = frame.collect()
    assert {(row["window"], row["worker"], row["sequence"], row["shard"]) for row in rows} == {
        (item.window, item.worker, item.sequence, shard_of(item.worker))
        for item in items
        if item.window < START + 120
    } | {(START, items[0].worker, None, items[0].shard)}
    wide = read_counts(spark, platform.store, [START])
    narrow = spark.read.format("snavio-stats-counts").schema("source string, count bigint")
    projected = narrow.options(
        table=platform.store.table, windows=str(START), endpoint_url=platform.endpoint
    ).load()
    assert projected.columns == ["source", "count"]
    # One of them has neither: the odd item, set aside.
    assert sorted(projected.collect(), key=repr) == sorted(wide.select("source", "count").collect(), key=repr)
    assert [row["item"] for row in wide.where("fault is not null").collect()] == ["odd#0"]
