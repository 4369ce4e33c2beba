"""Who hears of a ban, and how often."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from snavio.aws.memory.tables import MemoryTables
from snavio.domain.models import Ban, BanMode
from snavio.registry.store import RegistryStore
from snavio.spark.bans import AbuseBan, events_of, in_force, judge
from snavio.spark.dominance import Thresholds
from snavio.spark.loop import every
from snavio.spark.plan import Lateness, Plan, plan
from snavio.spark.sink import RegistrySink
from snavio.spark.watermark import State
from snavio.wire.events import decode_event
from snavio.wire.names import Names
from snavio.wire.stats import RETENTION_SECONDS

BAN = AbuseBan("acme/x", 600, 1200, ("t", "u", "nobodys"), 4, 2)
NEXT = AbuseBan("acme/x", 900, 1500, ("t",), 2, 2)
OWNERS = {"t": "owner", "u": "acme", "v": "third"}
NAMES = Names()


def test_offender_and_owners_hear_once_each_with_an_id_that_stays():
    events = events_of([BAN], OWNERS, now=1000)
    assert [event.tenant for event in events] == ["acme", "owner"]
    assert [event.event_id for event in events] == [e.event_id for e in events_of([BAN], OWNERS, now=1030)]
    assert events[0].ban_applied_until == "1970-01-01T00:20:00.000Z"


class World:
    """The tables the sink writes, in memory."""

    def __init__(self):
        self.tables = MemoryTables(lambda: 1000.0)
        for table in (NAMES.registry, NAMES.outbox, NAMES.bans):
            self.tables.create(table, key=("pk", "sk"))
        self.tables.create(NAMES.changelog, key=("pk", "seq"))
        self.sink = RegistrySink(self._open, NAMES)

    @asynccontextmanager
    async def _open(self):
        yield self.tables

    def apply(self, *bans, now=1000.0):
        return self.sink.apply(bans, events_of(bans, OWNERS, now=now), now=now)

    def operator(self, ban):
        store = RegistryStore(self.tables, NAMES, clock=lambda: 1000.0)
        asyncio.run(store.put_ban(ban, actor="ann"))

    def bans(self):
        return asyncio.run(RegistryStore(self.tables, NAMES, clock=lambda: 0.0).bans_of("acme/x"))

    def publish(self):
        """Every row that is owed, and none after that."""
        rows = self.tables.tables[NAMES.outbox].items
        events = [decode_event(row["body"]) for row in rows.values()]
        rows.clear()
        return [(event.tenant, event.event_id) for event in events]


def test_a_tenant_told_of_a_ban_window_is_not_told_again_once_the_event_is_published():
    world = World()
    assert world.apply(BAN) == 2
    assert {tenant for tenant, _ in world.publish()} == {"acme", "owner"}
    assert world.apply(BAN, now=1030.0) == 0
    wider = AbuseBan("acme/x", 600, 1200, ("t", "u", "v"), 9, 3)
    assert world.apply(wider, now=1030.0) == 1
    assert [tenant for tenant, _ in world.publish()] == ["third"]
    assert world.apply(NEXT) == 2


def test_what_was_told_is_kept_longer_than_any_window_is_read():
    world = World()
    world.apply(BAN)
    kept = world.tables.tables[NAMES.bans].items.values()
    assert {item["expires_at"] for item in kept} == {1000 + RETENTION_SECONDS}


@pytest.mark.parametrize("mode", [BanMode.OUTRIGHT, BanMode.COLD_ONLY])
def test_the_audit_leaves_an_operators_stricter_ban_alone(mode):
    world = World()
    ban = Ban(source="acme/x", mode=mode, reason="fraud")
    world.operator(ban)
    world.apply(BAN)
    assert world.bans() == [ban]
    world.sink.lift([BAN], now=1000.0)
    assert world.bans() == [ban]


def test_a_ban_is_lifted_where_it_stands_as_the_audit_placed_it():
    world = World()
    world.apply(BAN)
    world.sink.lift([AbuseBan("acme/x", 600, 1200, ("t",), 2, 2)], now=1000.0)
    assert world.bans() == []

    world.apply(NEXT)
    world.sink.lift([BAN], now=1000.0)
    (standing,) = world.bans()
    assert standing.until == 1500.0, "the ban of another window"

    touched = msgspec.structs.replace(standing, until=9000.0)
    world.operator(touched)
    world.sink.lift([NEXT], now=1000.0)
    assert world.bans() == [touched]


def test_a_ban_is_lifted_when_its_window_no_longer_shows_abuse_and_an_earlier_one_takes_its_place():
    other = AbuseBan("globex/y", 600, 1200, ("t",), 2, 2)
    verdict = judge([], [BAN, NEXT, other], {900}, now=1000)
    assert (verdict.acting, verdict.lifting, verdict.restoring) == ([], [NEXT], [BAN])
    again = judge([NEXT], [BAN, NEXT], {900}, now=1000)
    assert (again.acting, again.lifting, again.restoring) == ([NEXT], [], [])
    over = judge([], [BAN, NEXT], {900}, now=1500)
    assert (over.lifting, over.restoring) == ([], [])


def test_a_ban_found_after_it_would_have_ended_is_not_applied():
    assert in_force([BAN], 1199) == [BAN]
    assert in_force([BAN], 1200) == []


def test_a_ban_lasts_five_to_fifteen_minutes_from_when_what_it_is_for_can_be_seen():
    limits, settle, period = Thresholds(), Lateness().settle_seconds, 60
    until = limits.ban_windows * limits.ban_window_seconds
    first = limits.min_minutes * 60 + settle
    last = limits.ban_window_seconds + settle + period
    assert 5 * 60 <= until - last < until - first <= 15 * 60


DAY = 86_400
LATE = Lateness(windows=10, settle_seconds=15, most_windows=30)
NOW = 20 * DAY + 70.0


def test_the_first_run_looks_back_and_later_ones_from_the_watermark():
    assert plan(NOW, None, LATE) == Plan(20 * DAY - 600, 20 * DAY, 0, 0)
    assert plan(NOW + 5, None, LATE) == Plan(20 * DAY - 540, 20 * DAY + 60, 0, 0)
    assert plan(NOW, State(20 * DAY - 60), LATE) == Plan(20 * DAY - 660, 20 * DAY, 0, 0)


def test_a_first_run_begins_where_it_is_told_and_later_ones_where_the_last_one_ended():
    since = 20 * DAY - 3600 + 17.0
    assert plan(NOW, None, LATE, since=since) == Plan(20 * DAY - 3600, 20 * DAY - 1800, 30, 0)
    assert plan(NOW, State(20 * DAY - 60), LATE, since=since) == plan(NOW, State(20 * DAY - 60), LATE)
    ahead = plan(NOW, None, LATE, since=NOW + 9999)
    assert (ahead.start, ahead.end, ahead.behind) == (20 * DAY, 20 * DAY, 0)


def test_after_an_outage_runs_catch_up_in_steps_and_never_read_what_the_store_let_go():
    assert plan(NOW, State(20 * DAY - 3600), LATE) == Plan(20 * DAY - 4200, 20 * DAY - 1800, 30, 0)
    after = plan(NOW, State(10 * DAY), LATE)
    assert after.start > NOW - RETENTION_SECONDS
    assert after.end == after.start + 1800


@pytest.mark.parametrize("first", [True, False])
def test_what_the_store_let_go_of_before_it_was_read_is_told_once(first):
    oldest = plan(NOW, State(0), LATE).start

    def expired(begin):
        planned = plan(NOW, None, LATE, since=begin) if first else plan(NOW, State(begin), LATE)
        assert planned.start >= oldest
        return planned.expired

    assert [expired(oldest + 60 * i) for i in (-100, -1, 0, 1)] == [100, 1, 0, 0]
    assert plan(NOW, State(plan(NOW, State(0), LATE).end), LATE).expired == 0


def test_the_loop_keeps_to_the_minute_and_skips_what_it_missed():
    clock = [30.0]

    def sleep(seconds):
        clock[0] += seconds

    times = every(60, clock=lambda: clock[0], sleep=sleep)
    seen = [next(times)]
    clock[0] += 5
    seen.append(next(times))
    clock[0] += 150
    seen.append(next(times))
    assert seen == [30.0, 60.0, 210.0]
