"""Lanes in virtual time: gathering, retrying alone, keeping trouble in its lane."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest

from snavio.aws.errors import Permanent, Transient
from snavio.outbox.failures import Failures
from snavio.outbox.lanes import Lanes, LaneSettings
from snavio.outbox.values import Fate, StoredRow
from snavio.runtime import metrics
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import RecordingTelemetry, virtual_now, virtual_time
from snavio.wire.events import TelemetryDeliveryFailed, decode_event
from snavio.wire.names import PLATFORM_TENANT


def row(tenant, number=0, size=10):
    return StoredRow(f"{tenant}#0", f"{number:04d}", tenant, "snavio.x", f"{tenant}/s", "x" * size, 0, 0)


class FakeTopics:
    """Answers by tenant as told: a list of answers, one a call, the last for good."""

    def __init__(self):
        self.calls = []
        self.answers = {}

    async def publish(self, tenant, rows):
        self.calls.append((round(anyio.current_time(), 3), tenant, [row.sk for row in rows]))
        script = self.answers.get(tenant)
        answer = script and (script.pop(0) if len(script) > 1 else script[0])
        if callable(answer):
            answer = await answer(rows)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, list) else [None] * len(rows)


class FakeRows:
    def __init__(self):
        self.written = []

    async def write(self, rows):
        self.written += rows


class Bench:
    def __init__(self, **settings):
        self.topics, self.rows, self.telemetry = FakeTopics(), FakeRows(), RecordingTelemetry()
        self.log = recording_log([])
        self.failures = Failures(
            self.rows,
            worker_id="w",
            now=virtual_now,
            log=self.log,
            telemetry=self.telemetry,
            every_seconds=60,
        )
        self.lanes = Lanes(
            self.topics,
            self.remove,
            self.failures,
            log=self.log,
            settings=LaneSettings(**settings),
            telemetry=self.telemetry,
            now=virtual_now,
            roll=lambda: 1.0,
        )
        self.fates, self.removed = {}, []

    async def remove(self, keys):
        self.removed += keys

    def offer(self, row, **options):
        key = (row.tenant, row.sk)

        def done(fate):
            assert key not in self.fates, "a row was settled twice"
            self.fates[key] = (fate, round(anyio.current_time(), 3))

        self.lanes.offer(row, done, **options)

    @asynccontextmanager
    async def running(self):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.lanes.run)
            yield
            await self.lanes.below(1)
            tasks.cancel_scope.cancel()


@virtual_time
async def test_rows_wait_a_second_for_company_and_ten_wait_no_longer():
    bench = Bench()
    async with bench.running():
        bench.offer(row("slow", 1))
        for number in range(23):
            bench.offer(row("busy", number))
        await anyio.sleep(0.5)
        bench.offer(row("slow", 2))
    assert sorted((at, tenant, len(sent)) for at, tenant, sent in bench.topics.calls) == [
        (0.0, "busy", 10),
        (0.0, "busy", 10),
        (1.0, "busy", 3),
        (1.0, "slow", 2),
    ]
    assert bench.telemetry.total(metrics.OUTBOX_PUBLISHED) == 25


@virtual_time
async def test_what_failed_in_a_batch_is_tried_again_alone_and_the_rest_is_not_repeated():
    bench = Bench(backoff_base_seconds=0.2)
    bench.topics.answers["acme"] = [[None, Transient("throttled"), None], [Transient("throttled")], [None]]
    async with bench.running():
        for number in range(3):
            bench.offer(row("acme", number))
    assert bench.topics.calls == [
        (1.0, "acme", ["0000", "0001", "0002"]),
        (1.2, "acme", ["0001"]),
        (1.6, "acme", ["0001"]),
    ]
    assert {fate for fate, _ in bench.fates.values()} == {Fate.DELIVERED}
    assert [sk for _, sk in bench.removed] == ["0000", "0002", "0001"]


@virtual_time
async def test_rows_that_keep_failing_are_left_for_the_sweeper_and_reported():
    bench = Bench(attempts=3)
    bench.topics.answers["acme"] = [Transient("down")]
    async with bench.running():
        bench.offer(row("acme"))
    await bench.failures.report()
    assert bench.fates["acme", "0000"][0] is Fate.LEFT
    assert len(bench.topics.calls) == 3
    (told,) = bench.rows.written
    assert (told.tenant, decode_event(told.body).reason) == (PLATFORM_TENANT, "unavailable")


@virtual_time
async def test_a_row_its_topic_refuses_is_refused_alone():
    bench = Bench()
    bench.topics.answers["acme"] = [[None, Permanent("too large", code="TooLarge")]]
    async with bench.running():
        bench.offer(row("acme", 1))
        bench.offer(row("acme", 2))
    assert bench.fates["acme", "0001"][0] is Fate.DELIVERED
    assert bench.fates["acme", "0002"][0] is Fate.REFUSED


@virtual_time
async def test_a_broken_topic_leaves_its_rows_at_once_is_left_alone_and_comes_back():
    bench = Bench(shut_cap_seconds=60)
    bench.topics.answers["gone"] = [Permanent("no topic", code="NotFound")]
    async with bench.running():
        for number in range(25):
            bench.offer(row("gone", number))
        await anyio.sleep(1.5)
        assert {fate for fate, _ in bench.fates.values()} == {Fate.LEFT}
        calls = len(bench.topics.calls)
        bench.offer(row("gone", 100))
        assert bench.fates["gone", "0100"][0] is Fate.LEFT
        del bench.topics.answers["gone"]
        await anyio.sleep(2)  # its first pause is two seconds
        bench.offer(row("gone", 101))
        await bench.lanes.below(1)
    assert bench.fates["gone", "0101"][0] is Fate.DELIVERED
    assert len(bench.topics.calls) == calls + 1


@virtual_time
async def test_a_tenant_whose_calls_hang_or_fail_delays_nobody_else():
    bench = Bench(sends=2, ailing_sends=1, call_seconds=10, attempts=2)

    async def hang(rows):
        await anyio.sleep(3600)

    bench.topics.answers["hanging"] = [hang]
    bench.topics.answers["failing"] = [Transient("500")]
    async with bench.running():
        for number in range(100):
            bench.offer(row("hanging", number))
            bench.offer(row("failing", number))
        await anyio.sleep(11)  # the first calls of both are over: from now on both have slots of their own
        for number in range(20):
            bench.offer(row("healthy", number))
    delays = [at - 11 for (tenant, _), (_, at) in bench.fates.items() if tenant == "healthy"]
    assert len(delays) == 20
    assert max(delays) < 1.0


@virtual_time
async def test_a_full_lane_spills_its_own_rows_only():
    bench = Bench(rows_per_tenant=5)

    async def slow(rows):
        await anyio.sleep(5)

    bench.topics.answers["noisy"] = [slow]
    async with bench.running():
        for number in range(8):
            bench.offer(row("noisy", number))
        bench.offer(row("quiet"))
        spilled = [sk for (_, sk), (fate, _) in bench.fates.items() if fate is Fate.LEFT]
    assert spilled == ["0005", "0006", "0007"]
    assert [fate for fate, _ in bench.fates.values()].count(Fate.DELIVERED) == 6
    assert bench.telemetry.total(metrics.OUTBOX_FAILED, reason="lane-full") == 3


@virtual_time
async def test_a_row_in_hand_is_not_taken_twice_and_one_no_longer_wanted_is_not_published():
    bench = Bench()
    fates = []
    async with bench.running():
        bench.offer(row("acme", 1))
        bench.lanes.offer(row("acme", 1), fates.append)
        assert fates == [Fate.LEFT]
        bench.offer(row("acme", 2), wanted=lambda: False)
    assert bench.topics.calls == [(1.0, "acme", ["0001"])]
    assert bench.fates["acme", "0002"][0] is Fate.LEFT


@virtual_time
async def test_flushing_sends_at_once():
    bench = Bench()
    async with bench.running():
        bench.offer(row("acme"))
        await bench.lanes.flush()
    assert bench.topics.calls[0][0] == 0.0


@virtual_time
async def test_an_outage_is_reported_once_and_then_now_and_again_with_its_count():
    bench = Bench()
    for _ in range(3):
        bench.failures.note("acme", "NotFound", 10)
        await bench.failures.report()
    await anyio.sleep(61)
    await bench.failures.report()
    told = [decode_event(row.body) for row in bench.rows.written]
    assert [(event.affected_tenant, event.undelivered_events) for event in told] == [
        ("acme", 10),
        ("acme", 20),
    ]
    assert all(isinstance(event, TelemetryDeliveryFailed) for event in told)


@virtual_time
async def test_a_failure_of_the_operators_own_pipeline_is_measured_and_not_reported_into_it():
    bench = Bench()
    bench.failures.note(PLATFORM_TENANT, "NotFound", 3)
    await bench.failures.report()
    assert bench.rows.written == []
    assert bench.telemetry.total(metrics.OUTBOX_FAILED, reason="NotFound") == 3


@pytest.mark.parametrize("size", [300_000])
@virtual_time
async def test_a_row_larger_than_a_batch_goes_alone(size):
    bench = Bench()
    async with bench.running():
        bench.offer(row("acme", 1, size))
        bench.offer(row("acme", 2))
    assert sorted(sent for _, _, sent in bench.topics.calls) == [["0001"], ["0002"]]
