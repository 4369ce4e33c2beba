"""What is said of a telemetry queue from one reading to the next."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws.memory.tables import MemoryTables
from snavio.telemetry.queue_health import Finding, HealthSettings, QueueMemory, QueueReading, judge
from snavio.telemetry.queue_watch import QueueWatch
from snavio.wire.events import TelemetryDropped, TelemetryQueueUnhealthy
from snavio.wire.names import PLATFORM_TENANT

DAY = 24 * 3600
RETENTION = 14 * DAY
SETTINGS = HealthSettings()


def reading(**fields):
    plain = {"waiting": 0, "in_flight": 0, "delayed": 0, "dead_letters": 0, "retention_seconds": RETENTION}
    return QueueReading(tenant="acme", **plain | fields)


def memory(**fields):
    return QueueMemory(**{"read_at": 0.0, "empty_at": 0.0} | fields)


def test_what_is_missing_from_the_books_of_a_queue_at_its_retention_was_dropped():
    seen = reading(waiting=900, sent=50, deleted=0, oldest_seconds=float(RETENTION))
    verdict = judge(seen, memory(held=1000), 300.0, SETTINGS)
    assert verdict.dropped == 150


def test_without_cloudwatch_a_queue_never_seen_empty_for_its_retention_has_dropped_what_is_gone():
    seen = reading(waiting=900)
    verdict = judge(seen, memory(held=1000, read_at=RETENTION - 300.0), float(RETENTION), SETTINGS)
    assert (verdict.dropped, verdict.age_seconds) == (100, RETENTION)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 5))
def test_a_young_queue_never_drops_and_no_count_is_negative(held, sent, deleted, dead):
    seen = reading(waiting=held, sent=sent, deleted=deleted, oldest_seconds=3600.0, dead_letters=dead)
    assert judge(seen, memory(held=500), 300.0, SETTINGS).dropped == 0
    old = msgspec.structs.replace(seen, oldest_seconds=float(RETENTION))
    assert judge(old, memory(held=500), 300.0, SETTINGS).dropped >= 0


def test_what_went_to_the_dlq_was_not_dropped():
    seen = reading(waiting=900, dead_letters=100, oldest_seconds=float(RETENTION), deleted=0)
    assert judge(seen, memory(held=1000), 300.0, SETTINGS).dropped == 0


@pytest.mark.parametrize(
    ("seen", "before", "findings"),
    [
        (reading(), memory(), ()),
        (reading(waiting=5, oldest_seconds=60.0, deleted=0), memory(), ()),
        (reading(waiting=5, oldest_seconds=2.0 * DAY, deleted=0), memory(), (Finding.UNCONSUMED,)),
        (reading(waiting=5, oldest_seconds=2.0 * DAY, deleted=3), memory(), (Finding.STALLED,)),
        (reading(dead_letters=2), memory(dead_letters=1), (Finding.DLQ_GROWING,)),
        (reading(dead_letters=2), memory(dead_letters=2), ()),
        (reading(waiting=5), memory(), (Finding.UNCONSUMED,)),
    ],
)
def test_findings(seen, before, findings):
    assert judge(seen, before, 2.0 * DAY, SETTINGS).findings == findings


def test_a_first_look_at_a_queue_blames_nobody():
    assert judge(reading(waiting=100, dead_letters=5), None, 1e9, SETTINGS).findings == ()


def test_the_same_finding_is_told_once_a_day_and_again_after_it_was_over():
    seen = reading(waiting=5, oldest_seconds=2.0 * DAY, deleted=0)
    now, known, told = 2.0 * DAY, memory(), []
    for _ in range(2 * 288):
        verdict = judge(seen, known, now, SETTINGS)
        told += [now] * len(verdict.findings)
        known, now = verdict.memory, now + 300
    assert told == [2.0 * DAY, 3.0 * DAY]
    known = judge(reading(), known, now, SETTINGS).memory
    assert judge(seen, known, now + 7200, SETTINGS).findings == (Finding.UNCONSUMED,)


class Scripted:
    def __init__(self, *readings):
        self.readings_to_give = readings

    async def readings(self, since, now):
        for one in self.readings_to_give:
            yield one


async def test_tenants_hear_what_they_lost_and_operators_what_is_wrong_once_however_many_workers_look():
    tables = MemoryTables()
    tables.create("alerts", key=["pk", "sk"])
    first = reading(waiting=1000, oldest_seconds=float(RETENTION), deleted=0)
    later = reading(waiting=900, oldest_seconds=float(RETENTION), deleted=0, sent=0)

    def watch(*readings):
        return QueueWatch(Scripted(*readings), tables, "alerts", every_seconds=300)

    before = await watch(first).look(1000.0)
    assert [type(event) for event in before.events] == [TelemetryQueueUnhealthy]
    await watch().remember(before)
    assert await watch(later).look(1100.0) is None, "somebody looked a moment ago"
    after = await watch(later).look(1300.0)
    (dropped,) = after.events
    assert isinstance(dropped, TelemetryDropped)
    assert (dropped.tenant, dropped.dropped_events, dropped.reason) == ("acme", 100, "queue_unconsumed")
    assert before.events[0].tenant == PLATFORM_TENANT
    again = await watch(later).look(1300.0)
    assert again.events == after.events, "not remembered, so told again: a crash loses nothing"
