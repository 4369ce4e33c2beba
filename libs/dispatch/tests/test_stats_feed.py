"""The fairness feed of a worker: a window is written whole, kept while it cannot be, and its loss is told."""

from snavio.aws.errors import Refused
from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.tables import MemoryTables
from snavio.dispatch.stats_feed import StatsFeed
from snavio.runtime import metrics
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import RecordingTelemetry
from snavio.wire.stats import WINDOW_SECONDS, decode_rows


class Feed:
    """A feed on a table that can be told to refuse."""

    def __init__(self):
        self.clock = ManualClock()
        self._tables = MemoryTables(self.clock)
        self._tables.create("stats", key=("pk", "sk"))
        self.refusing = False
        self.leaving = 0
        self.lines = []
        self.telemetry = RecordingTelemetry()
        self.feed = StatsFeed(
            self,
            "stats",
            worker="fast-1",
            service="fast",
            clock=self.clock,
            log=recording_log(self.lines),
            telemetry=self.telemetry,
        )

    async def put_batch(self, table, items):
        if self.refusing:
            raise Refused("throttled")
        if self.leaving:
            self.leaving -= 1
            return items
        return await self._tables.put_batch(table, items)

    async def minute(self, commands=1):
        for _ in range(commands):
            self.feed.tally.dispatched("acme/billing", "bot", "go", 5.0)
        self.clock.advance(WINDOW_SECONDS)
        await self.feed.push()

    def items(self):
        return self._tables.tables["stats"].items.values()

    def written(self):
        return sorted((item["sequence"], item["last"]) for item in self.items())

    def counted(self):
        return sum(row.count for item in self.items() for row in decode_rows(item["rows"]))


async def test_a_window_that_could_not_be_written_is_written_with_the_next():
    world = Feed()
    world.refusing = True
    await world.minute()
    assert world.written() == []
    world.refusing = False
    await world.minute()
    assert world.written() == [(0, False), (1, False)]


async def test_what_the_table_leaves_unwritten_is_tried_again():
    world = Feed()
    world.leaving = 2
    await world.minute()
    assert world.written() == [(0, False)]


async def test_an_open_window_is_not_written_before_its_minute_is_over():
    world = Feed()
    world.feed.tally.dispatched("acme/billing", "bot", "go", 5.0)
    await world.feed.push()
    assert world.written() == []


async def test_a_drained_worker_says_which_window_was_its_last():
    world = Feed()
    await world.minute()
    await world.feed.finish()
    assert world.written() == [(0, False), (1, True)]


async def test_a_clock_set_back_replaces_nothing_that_was_written():
    world = Feed()
    await world.minute(commands=105)
    world.clock.advance(-90)
    await world.minute(commands=2)
    world.clock.advance(90)
    await world.minute()
    await world.feed.finish()
    assert world.counted() == 108
    assert world.written() == [(0, False), (1, False), (2, True)]


async def test_when_the_table_is_away_for_long_the_oldest_windows_go_and_their_loss_is_told():
    world = Feed()
    world.refusing = True
    for _ in range(12):
        await world.minute()
    world.refusing = False
    await world.minute()
    assert [sequence for sequence, _ in world.written()] == list(range(3, 13))
    assert world.telemetry.total(metrics.STATS_LOST) == 3
    assert len(world.lines) == 3
