from __future__ import annotations

import signal
from contextlib import asynccontextmanager

import anyio
import pytest

from snavio.aws.errors import NotFound, Transient
from snavio.runtime import metrics
from snavio.runtime.common_config import CommonConfig
from snavio.runtime.lifecycle import ABORTED, CLEAN, FAILED, run
from snavio.runtime.outcome import Done
from snavio.runtime.testing import FakeSignals, virtual_time
from snavio.runtime.worker import Worker

Q = "memory://sqs/000000000000/work"
CONFIG = CommonConfig(wait_seconds=1, drain_seconds=10, flush_seconds=5)


class Harness:
    """Runs a worker beside a script that sends signals and looks at it."""

    def __init__(self, log, telemetry) -> None:
        self._log = log
        self._telemetry = telemetry
        self.signals = FakeSignals()
        self.worker: Worker
        self.exit_code: int | None = None

    async def run(self, wire, script=None) -> int:
        self.worker = Worker(
            "shield", CONFIG, worker_id="w1", log=self._log, telemetry=self._telemetry, roll=lambda: 0.5
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._run, wire)
            if script:
                await script(self.worker)
        assert self.exit_code is not None
        return self.exit_code

    async def _run(self, wire) -> None:
        self.exit_code = await run(self.worker, wire, signals=self.signals)

    def terminate(self) -> None:
        self.signals.send(signal.SIGTERM)


@pytest.fixture
def harness(log, telemetry) -> Harness:
    return Harness(log, telemetry)


def failure(lines: list[dict]) -> dict:
    (line,) = [line for line in lines if line["event"] == "worker.failed"]
    return line


@virtual_time
async def test_sigterm_drains_then_ends_tasks_then_flushes_in_order_then_closes_and_exits_0(harness, queues):
    order: list[str] = []

    @asynccontextmanager
    async def resource():
        yield "aws"
        order.append("closed")

    async def handler(messages):
        await anyio.sleep(3)
        order.append("handled")
        return [Done()] * len(messages)

    async def beside():
        try:
            await anyio.sleep_forever()
        finally:
            order.append("task ended")

    async def flush_stats():
        order.append("stats")

    async def flush_spans():
        order.append("spans")

    async def wire(worker: Worker):
        assert await worker.enter(resource()) == "aws"
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=handler)
        worker.background("beside", beside)
        worker.on_flush("stats", flush_stats)
        worker.on_flush("spans", flush_spans)

    async def script(worker: Worker):
        queues.put(Q, "a")
        await anyio.sleep(1)
        harness.terminate()

    assert await harness.run(wire, script) == CLEAN
    assert order == ["handled", "task ended", "stats", "spans", "closed"]
    assert queues.bodies(Q) == []


@virtual_time
async def test_nothing_is_taken_in_before_what_comes_first_is_done(harness, queues):
    order: list[str] = []

    async def load():
        await anyio.sleep(3)
        order.append("loaded")

    async def handler(messages):
        order.append("handled")
        return [Done()] * len(messages)

    async def wire(worker: Worker):
        worker.first(load)
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=handler)

    async def script(worker: Worker):
        queues.put(Q, "a")
        await anyio.sleep(5)
        harness.terminate()

    assert await harness.run(wire, script) == CLEAN
    assert order == ["loaded", "handled"]


@virtual_time
async def test_a_worker_asked_to_stop_before_it_could_begin_ends_cleanly_and_takes_nothing(harness, queues):
    async def wire(worker: Worker):
        worker.first(anyio.sleep_forever)
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=None)

    async def script(worker: Worker):
        queues.put(Q, "a")
        await anyio.sleep(5)
        harness.terminate()

    assert await harness.run(wire, script) == CLEAN
    assert queues.called("receive") == []
    assert anyio.current_time() < 6


@virtual_time
async def test_a_second_signal_aborts_without_waiting(harness, queues, lines):
    async def handler(messages):
        await anyio.sleep(1000)
        return [Done()] * len(messages)

    async def wire(worker: Worker):
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=handler)

    async def script(worker: Worker):
        queues.put(Q, "a")
        await anyio.sleep(1)
        harness.terminate()
        await anyio.sleep(1)
        harness.signals.send(signal.SIGINT)

    assert await harness.run(wire, script) == ABORTED
    assert anyio.current_time() < 3
    assert queues.visible(Q) == ["a"]
    assert any(line["event"] == "worker.aborted" and line["signal"] == "SIGINT" for line in lines)


@virtual_time
async def test_work_in_hand_past_the_drain_deadline_is_handed_back_and_the_exit_is_still_clean(
    harness, queues
):
    async def handler(messages):
        await anyio.sleep(1000)
        return [Done()] * len(messages)

    async def wire(worker: Worker):
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=handler)

    async def script(worker: Worker):
        queues.put(Q, "a")
        await anyio.sleep(1)
        harness.terminate()

    assert await harness.run(wire, script) == CLEAN
    assert anyio.current_time() == pytest.approx(11, abs=0.2)
    assert queues.visible(Q) == ["a"]


@pytest.mark.parametrize("kind", ["background", "every"])
@virtual_time
async def test_a_background_task_that_raises_ends_the_process_and_names_itself(harness, lines, kind):
    async def broken():
        await anyio.sleep(1)
        raise RuntimeError("the cache is upside down")

    async def wire(worker: Worker):
        if kind == "every":
            worker.every(1.0, broken, name="refresh")
        else:
            worker.background("refresh", broken)

    assert await harness.run(wire) == FAILED
    assert failure(lines)["task"] == "refresh"
    assert "the cache is upside down" in failure(lines)["error"]


@virtual_time
async def test_a_background_task_that_quietly_returns_ends_the_process(harness, lines):
    async def finished():
        await anyio.sleep(1)

    async def wire(worker: Worker):
        worker.background("leases", finished)

    assert await harness.run(wire) == FAILED
    assert "returned" in failure(lines)["error"]


@virtual_time
async def test_an_intake_that_fails_ends_the_process(harness, queues, lines):
    del queues.queues[Q]

    async def wire(worker: Worker):
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=None)

    assert await harness.run(wire) == FAILED
    assert failure(lines)["task"] == "work"
    assert "There is no queue" in failure(lines)["error"]


@virtual_time
async def test_a_failing_wiring_ends_the_process_with_the_reason(harness, lines):
    async def wire(worker: Worker):
        raise NotFound("no table snavio-registry")

    assert await harness.run(wire) == FAILED
    assert failure(lines)["error"] == "no table snavio-registry"


@virtual_time
async def test_a_signal_while_wiring_ends_at_once(harness):
    async def wire(worker: Worker):
        await anyio.sleep(1000)

    async def script(worker: Worker):
        await anyio.sleep(1)
        harness.terminate()

    assert await harness.run(wire, script) == CLEAN
    assert anyio.current_time() < 2


@virtual_time
async def test_a_periodic_task_repeats_and_survives_only_what_it_tolerates(harness, lines, telemetry):
    runs = []

    async def refresh():
        runs.append(anyio.current_time())
        if len(runs) == 2:
            raise Transient("throttled")

    async def wire(worker: Worker):
        worker.every(2.0, refresh, name="refresh", tolerate=(Transient,), at_once=True)

    async def script(worker: Worker):
        await anyio.sleep(5)
        assert worker.tasks[0].status().tolerated == 1
        harness.terminate()

    assert await harness.run(wire, script) == CLEAN
    assert runs == pytest.approx([0, 2, 4])
    assert any(line["event"] == "task.tolerated" for line in lines)
    assert telemetry.total(metrics.TASK_FAULTS, task="refresh") == 1


@pytest.mark.parametrize("seconds", [0, 1000], ids=["raises", "hangs"])
@virtual_time
async def test_a_flush_that_fails_is_an_unclean_exit_but_the_next_one_still_runs(harness, lines, seconds):
    flushed = []

    async def broken():
        await anyio.sleep(seconds)
        raise OSError("no route")

    async def wire(worker: Worker):
        async def spans():
            await anyio.sleep(1)
            flushed.append("spans")

        worker.on_flush("stats", broken)
        worker.on_flush("spans", spans)

    async def script(worker: Worker):
        await anyio.sleep(1)
        harness.terminate()

    assert await harness.run(wire, script) == FAILED
    assert flushed == ["spans"]
    assert [line["task"] for line in lines if line["event"] == "flush.failed"] == ["stats"]


@virtual_time
async def test_a_failure_still_flushes(harness):
    flushed = []

    async def broken():
        raise RuntimeError

    async def flush():
        await anyio.sleep(1)
        flushed.append(1)

    async def wire(worker: Worker):
        worker.background("broken", broken)
        worker.on_flush("metrics", flush)

    assert await harness.run(wire) == FAILED
    assert flushed == [1]


@virtual_time
async def test_an_intake_that_ignores_its_deadline_is_cancelled_and_the_exit_is_unclean(harness, lines):
    class Stubborn:
        name = "stream"

        async def run(self):
            await anyio.sleep_forever()

        def drain(self, seconds):
            pass

        def status(self):
            return None

        def ailment(self):
            return None

    async def wire(worker: Worker):
        worker.intake(Stubborn())

    async def script(worker: Worker):
        await anyio.sleep(1)
        harness.terminate()

    assert await harness.run(wire, script) == FAILED
    assert failure(lines)["task"] == "drain"
    assert anyio.current_time() == pytest.approx(16, abs=0.1)


@virtual_time
async def test_readiness_follows_wiring_checks_and_draining(harness, queues):
    missing = ["no keys yet"]
    seen = []

    async def wire(worker: Worker):
        seen.append(worker.unready())
        worker.ready("keys", lambda: missing[0] if missing else None)
        worker.consume(queues=queues, queue=Q, dlq=Q + "-dlq", handler=None)

    async def script(worker: Worker):
        await anyio.sleep(1)
        seen.append(worker.unready())
        missing.clear()
        seen.append(worker.unready())
        harness.terminate()
        await anyio.sleep(0.1)
        seen.append(worker.unready())

    assert await harness.run(wire, script) == CLEAN
    assert seen == [["starting"], ["keys: no keys yet"], [], ["draining"]]
