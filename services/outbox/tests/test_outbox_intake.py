"""Workers sharing a stream, in virtual time: leases, checkpoints, takeover, splits, expired iterators, trimmed records."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio

from snavio.aws.errors import Permanent
from snavio.aws.memory.tables import MemoryTables
from snavio.outbox.intake import IntakeSettings, StreamIntake
from snavio.outbox.ports import EXPIRED, TRIMMED
from snavio.outbox.shard_leases import ShardLeases
from snavio.outbox.sweeper import Sweeper, SweepSettings
from snavio.outbox.values import Record, RecordPage, Shard, StoredRow
from snavio.runtime.bell import Bell
from snavio.runtime.leadership import Leadership
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import virtual_now, virtual_time

SETTINGS = IntakeSettings(lease_seconds=10, rebalance_seconds=1, checkpoint_seconds=1, poll_seconds=0.2)


class FakeStream:
    """Shards of records; iterators are (shard, position) and last fifteen minutes."""

    def __init__(self):
        self.records, self.parents, self.closed, self.trimmed = {}, {}, set(), {}
        self.expired = 0

    def add(self, shard, *rows, parent=None):
        self.parents.setdefault(shard, parent)
        kept = self.records.setdefault(shard, [])
        for row in rows:
            kept.append(Record(f"{shard}-{len(kept):04d}", virtual_now(), row=row))

    async def arn(self):
        return "arn:stream"

    async def shards(self, stream):
        await anyio.sleep(0.001)
        return [Shard(shard, parent) for shard, parent in self.parents.items()]

    async def iterator(self, stream, shard, *, after):
        await anyio.sleep(0.001)
        start = 0 if after is None else int(after.rpartition("-")[2]) + 1
        if after is not None and start < self.trimmed.get(shard, 0):
            raise Permanent("trimmed", code=TRIMMED)
        return f"{shard}|{max(start, self.trimmed.get(shard, 0))}|{virtual_now()}"

    async def read(self, iterator, *, limit):
        await anyio.sleep(0.001)
        shard, start, made_at = iterator.split("|")
        if virtual_now() - float(made_at) > 900 or self.expired:
            self.expired = max(0, self.expired - 1)
            raise Permanent("expired", code=EXPIRED)
        if int(start) < self.trimmed.get(shard, 0):
            raise Permanent("trimmed", code=TRIMMED)
        page = self.records[shard][int(start) : int(start) + limit]
        end = int(start) + len(page)
        over = shard in self.closed and end == len(self.records[shard])
        return RecordPage(page, None if over else f"{shard}|{end}|{virtual_now()}")


class World:
    """What outlives a worker: the stream, the tables, and who was told what."""

    def __init__(self):
        self.stream, self.tables = FakeStream(), MemoryTables(virtual_now)
        self.tables.create("leases", key=["pk"])
        self.rows, self.published = {}, []

    def write(self, shard, *numbers, parent=None):
        rows = [
            StoredRow("acme#0", f"{n:04d}", "acme", "snavio.x", "acme/s", "{}", int(virtual_now() * 1000), 0)
            for n in numbers
        ]
        self.rows |= {row.key: row for row in rows}
        self.stream.add(shard, *rows, parent=parent)

    @property
    def numbers(self):
        return sorted(int(row.sk) for row in self.published)


class WorldRows:
    def __init__(self, world):
        self._world = world

    async def existing(self, keys):
        return {key for key in keys if key in self._world.rows}

    async def all(self):
        yield list(self._world.rows.values())


class FakeLanes:
    """Publishes after a moment, and removes; or holds on to what it has."""

    def __init__(self, world):
        self._world, self.pending, self._holding, self._tasks = world, 0, False, None
        self._changed = Bell()

    def hold(self, *, on):
        self._holding = on
        self._changed.ring()

    async def below(self, limit):
        pass

    async def room(self, tenant):
        return True

    async def flush(self):
        while self.pending:
            await self._changed.wait()

    def carry(self, row, settled, *, wanted=lambda: True):
        self.pending += 1
        self._tasks.start_soon(self._publish, row, settled, wanted)

    def note_only(self, row, settled):
        settled()

    async def _publish(self, row, settled, wanted):
        await anyio.sleep(0.1)
        while self._holding:
            await self._changed.wait()
        if wanted():
            self._world.published.append(row)
            self._world.rows.pop(row.key, None)
        self.pending -= 1
        self._changed.ring()
        settled()


class FakeWorker:
    def __init__(self, world, name):
        self.lanes = FakeLanes(world)
        rows, log = WorldRows(world), recording_log([])
        self.leases = ShardLeases(world.tables, "leases", me=name, lease_seconds=10, now=virtual_now)
        self.intake = StreamIntake(
            stream=world.stream,
            leases=self.leases,
            carrier=self.lanes,
            lanes=self.lanes,
            rows=rows,
            me=name,
            log=log,
            settings=SETTINGS,
            now=virtual_now,
            roll=lambda: 0.5,
        )
        self.sweeper = Sweeper(
            stream=world.stream,
            leases=self.leases,
            rows=rows,
            carrier=self.lanes,
            lanes=self.lanes,
            leadership=Leadership(world.tables, "leases", "sweep", me=name, seconds=30, now=virtual_now),
            now=virtual_now,
            settings=SweepSettings(missed_after_seconds=60),
        )

    @property
    def shards(self):
        return {status.shard for status in self.intake.status().shards}

    async def run(self):
        async with anyio.create_task_group() as tasks:
            self.lanes._tasks = tasks
            await self.intake.run()

    @asynccontextmanager
    async def alive(self):
        """Runs until the block is left, then dies without a word."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_killed)
            yield self
            self.intake._leases = _Dead()
            tasks.cancel_scope.cancel()

    async def _until_killed(self):
        await self.run()


class _Dead:
    """A dead worker writes nothing any more."""

    async def release(self, *arguments, **named):
        pass

    async def depart(self, *arguments):
        pass


@virtual_time
async def test_two_workers_share_the_shards_and_a_dead_ones_are_taken_over():
    world = World()
    for shard in "abcd":
        world.write(shard)
    one, two = FakeWorker(world, "one"), FakeWorker(world, "two")
    async with one.alive():
        async with two.alive():
            await anyio.sleep(15)
            assert (len(one.shards), len(two.shards)) == (2, 2)
            assert one.shards | two.shards == set("abcd")
        world.write("a", *range(10))
        world.write("b", *range(10, 20))
        world.write("c", *range(20, 30))
        world.write("d", *range(30, 40))
        await anyio.sleep(15)
        assert one.shards == set("abcd")
    assert world.numbers == list(range(40))


@virtual_time
async def test_a_worker_that_dies_with_records_in_hand_loses_none_and_its_successor_repeats_none_removed():
    world = World()
    world.write("a", *range(5))
    async with FakeWorker(world, "one").alive() as one:
        await anyio.sleep(3)
        one.lanes.hold(on=True)
        world.write("a", *range(5, 10))
        await anyio.sleep(3)
    assert world.numbers == list(range(5))
    async with FakeWorker(world, "two").alive():
        await anyio.sleep(15)
    assert world.numbers == list(range(10))


@virtual_time
async def test_a_drained_worker_publishes_what_it_has_and_gives_its_shards_back_at_once():
    world = World()
    world.write("a", *range(10))
    one = FakeWorker(world, "one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await anyio.sleep(0.15)
        one.intake.drain(5)
    assert world.numbers == list(range(10))
    two = FakeWorker(world, "two")
    book = await two.leases.read("arn:stream")
    assert book.workers == frozenset()
    assert (book.leases["a"].owner, book.leases["a"].checkpoint) == ("", "a-0009")


@virtual_time
async def test_children_are_read_only_after_their_parent_is_settled_to_its_end():
    world = World()
    world.write("parent", *range(5))
    world.write("child", *range(5, 10), parent="parent")
    async with FakeWorker(world, "one").alive() as one:
        await anyio.sleep(5)
        assert world.numbers == list(range(5))
        one.lanes.hold(on=True)
        world.write("parent", 100)
        await anyio.sleep(1)
        world.stream.closed.add("parent")
        await anyio.sleep(5)
        assert one.shards == {"parent"}
        one.lanes.hold(on=False)
        await anyio.sleep(5)
        assert one.shards == {"child"}
    assert world.numbers == [*range(10), 100]
    assert {int(row.sk) for row in world.published[-5:]} == set(range(5, 10))


@virtual_time
async def test_an_expired_iterator_is_renewed_where_it_stood():
    world = World()
    world.write("a", *range(3))
    async with FakeWorker(world, "one").alive():
        await anyio.sleep(2)
        world.stream.expired = 2
        world.write("a", *range(3, 6))
        await anyio.sleep(2)
    assert world.numbers == list(range(6))


@virtual_time
async def test_what_was_trimmed_from_the_stream_is_found_by_the_sweeper():
    world = World()
    world.write("a", *range(3))
    async with FakeWorker(world, "one").alive():
        await anyio.sleep(2)
    world.write("a", *range(3, 9))
    world.stream.trimmed["a"] = 6
    await anyio.sleep(100)
    async with FakeWorker(world, "two").alive() as two:
        await anyio.sleep(5)
        assert world.numbers == [0, 1, 2, 6, 7, 8]
        await two.sweeper.sweep()
        await anyio.sleep(1)
    assert world.numbers == list(range(9))


@virtual_time
async def test_the_sweeper_keeps_its_hands_off_what_a_worker_still_has():
    world = World()
    world.write("a", *range(3))
    async with FakeWorker(world, "one").alive() as one, FakeWorker(world, "two").alive() as two:
        one.lanes.hold(on=True)
        two.lanes.hold(on=True)
        await anyio.sleep(100)
        idle = two if one.shards else one
        idle.lanes.hold(on=False)
        await idle.sweeper.sweep()
        await anyio.sleep(5)
        assert world.numbers == []
        one.lanes.hold(on=False)
        two.lanes.hold(on=False)
        await anyio.sleep(5)
    assert world.numbers == [0, 1, 2]


@virtual_time
async def test_a_worker_that_lost_its_lease_stops_and_publishes_nothing_that_was_waiting():
    world = World()
    world.write("a", *range(3))
    async with FakeWorker(world, "one").alive() as one:
        await anyio.sleep(2)
        one.lanes.hold(on=True)
        world.write("a", *range(3, 6))
        await anyio.sleep(1)
        item = await world.tables.get("leases", {"pk": "stream#a"})
        await world.tables.put("leases", {**item, "owner": "two", "until": virtual_now() + 100})
        await anyio.sleep(3)
        assert one.shards == set()
        one.lanes.hold(on=False)
        await anyio.sleep(3)
    assert world.numbers == [0, 1, 2]


@virtual_time
async def test_a_table_made_anew_is_read_from_the_beginning():
    world = World()
    world.write("a", *range(3))
    one = FakeWorker(world, "one")
    claimed = await one.leases.claim("a", "arn:old")
    await one.leases.renew(claimed, checkpoint="a-0099", position=virtual_now(), finished=True)
    async with one.alive():
        await anyio.sleep(2)
    assert world.numbers == [0, 1, 2]
