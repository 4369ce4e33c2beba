"""The fairness feed of a worker: a window is written whole, kept while it cannot be, and its loss is told."""

import anyio
import pytest

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
        # How many more calls are refused, and how many after them leave their last item unwritten.
        self.refusals = 0
        self.leaving = 0
        self.asked = []
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
        self.asked.append([item["sk"] for item in items])
        if self.refusing or self.refusals:
            self.refusals = max(0, self.refusals - 1)
            raise Refused("throttled")
        if self.leaving:
            self.leaving -= 1
            if items[1:]:
                await self._tables.put_batch(table, items[:-1])
            return items[-1:]
        return await self._tables.put_batch(table, items)

    async def minute(self, commands=1):
        for _ in range(commands):
            self.feed.tally.dispatched("acme/billing", "bot", "go", 5.0)
        self.clock.advance(WINDOW_SECONDS)
        await self.feed.push()

    def items(self):
        return self._tables.tables["stats"].items.values()

    def written(self):
        return sorted({(item["sequence"], item["last"]) for item in self.items()})

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


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr("snavio.dispatch.stats_feed._PAUSES", (0.0, 0.0))
    monkeypatch.setattr("snavio.dispatch.stats_feed._LAST_PAUSE_SECONDS", 0.0)


async def test_a_table_that_leaves_items_again_and_again_does_not_keep_the_next_window_from_closing(
    no_pauses,
):
    world = Feed()
    world.leaving = 1_000_000
    for commands in (3, 4):
        await world.minute(commands)
    assert world.written() == []
    world.leaving = 0
    await world.minute(5)
    assert world.written() == [(0, False), (1, False), (2, False)]
    by_window = sorted(
        (item["window"], sum(row.count for row in decode_rows(item["rows"]))) for item in world.items()
    )
    assert [count for _, count in by_window] == [3, 4, 5]


async def test_parts_that_were_written_are_not_written_again_with_those_that_were_left(
    no_pauses, monkeypatch
):
    monkeypatch.setattr("snavio.wire.stats.MAX_ITEM_ROWS", 1)
    world = Feed()
    for target in ("bot", "mail", "print"):
        world.feed.tally.dispatched("acme/billing", target, "go", 5.0)
    world.leaving = 3
    await world.minute()
    await world.feed.push()
    assert sorted(world.asked[0]) == ["fast-1#0", "fast-1#1", "fast-1#2"]
    assert [len(asked) for asked in world.asked] == [3, 1, 1, 1]
    assert world.counted() == 4


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


async def test_a_worker_that_drains_while_the_table_refuses_writes_all_it_kept_once_it_no_longer_does(
    no_pauses,
):
    world = Feed()
    world.refusing = True
    await world.minute()
    world.refusing, world.refusals = False, 20
    await world.feed.finish()
    assert world.written() == [(0, False), (1, True)]


async def test_a_worker_that_cannot_write_its_last_windows_does_not_call_itself_done():
    world = Feed()
    world.refusing = True
    with anyio.move_on_after(0.05) as share:
        await world.feed.finish()
    assert share.cancelled_caught


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


async def test_a_clock_that_was_ahead_for_a_moment_silences_nobody_until_its_time_comes():
    world = Feed()
    start = world.clock()
    world.clock.advance(3600)
    await world.feed.push()
    world.clock.advance(-3600)
    for commands in (3, 4):
        await world.minute(commands)
    assert world.counted() == 7
    assert max(item["window"] for item in world.items()) <= start + 2 * WINDOW_SECONDS
    assert world.written() == [(0, False), (1, False)]


async def test_when_the_table_is_away_for_long_the_oldest_windows_go_and_their_loss_is_told(monkeypatch):
    monkeypatch.setattr("snavio.wire.stats.MAX_ITEM_ROWS", 1)
    world = Feed()
    world.refusing = True
    for _ in range(12):
        # Two rows, so two items: it is windows that are told of.
        world.feed.tally.rejected("acme/billing", "bot", "go", "acl-deny")
        await world.minute()
    world.refusing = False
    await world.minute()
    assert [sequence for sequence, _ in world.written()] == list(range(3, 13))
    assert world.telemetry.total(metrics.STATS_LOST) == 3
    assert len(world.lines) == 3
