"""Who hears of a ban, and how often."""

from __future__ import annotations

from snavio.spark.audit import Lateness, State, every, plan
from snavio.spark.bans import AbuseBan, events_of, in_force
from snavio.wire.stats import RETENTION_SECONDS

BAN = AbuseBan("acme/x", 600, 1200, ("t", "u", "nobodys"), 4, 2)
OWNERS = {"t": "owner", "u": "acme", "v": "third"}


def test_offender_and_owners_hear_once_each_with_an_id_that_stays():
    events = events_of([BAN], [], OWNERS, now=1000)
    assert [event.tenant for event in events] == ["acme", "owner"]
    assert [event.event_id for event in events] == [
        e.event_id for e in events_of([BAN], [], OWNERS, now=1030)
    ]
    assert events[0].ban_applied_until == "1970-01-01T00:20:00.000Z"


def test_only_a_tenant_newly_concerned_hears_of_a_ban_window_again():
    wider = AbuseBan("acme/x", 600, 1200, ("t", "u", "v"), 9, 3)
    assert [event.tenant for event in events_of([wider], [BAN], OWNERS, now=1000)] == ["third"]
    following = AbuseBan("acme/x", 900, 1500, ("t",), 2, 2)
    assert [event.tenant for event in events_of([following], [BAN], OWNERS, now=1000)] == ["acme", "owner"]


def test_a_ban_found_after_it_would_have_ended_is_not_applied():
    assert in_force([BAN], 1199) == [BAN]
    assert in_force([BAN], 1200) == []


DAY = 86_400


def test_the_first_run_looks_back_and_later_ones_from_the_watermark():
    late = Lateness(windows=10, settle_seconds=15, most_windows=30)
    now = 20 * DAY + 70.0
    assert plan(now, None, late) == (20 * DAY - 600, 20 * DAY, 0)
    assert plan(now + 5, None, late) == (20 * DAY - 540, 20 * DAY + 60, 0)
    assert plan(now, State(20 * DAY - 60), late) == (20 * DAY - 660, 20 * DAY, 0)


def test_after_an_outage_runs_catch_up_in_steps_and_never_read_what_the_store_let_go():
    late = Lateness(windows=10, settle_seconds=15, most_windows=30)
    now = 20 * DAY + 70.0
    start, end, behind = plan(now, State(20 * DAY - 3600), late)
    assert (start, end, behind) == (20 * DAY - 4200, 20 * DAY - 1800, 30)
    start, end, _ = plan(now, State(10 * DAY), late)
    assert start > now - RETENTION_SECONDS
    assert end == start + 1800


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
