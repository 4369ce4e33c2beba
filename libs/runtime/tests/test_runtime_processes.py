"""Real worker processes on a real AWS endpoint, stopped in every way there is; every message is accounted for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from snavio.aws.boto.session import open_aws
from snavio.aws.values import Outgoing
from snavio.runtime.lifecycle import CLEAN, FAILED
from snavio.runtime.main import MISCONFIGURED

if TYPE_CHECKING:
    from snavio.aws.ports import Queues

REGION = "us-east-1"
WORKER = Path(__file__).with_name("forwarding_worker.py")
pytestmark = pytest.mark.aws


class Process:
    """A worker under test, with the log lines it wrote."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict] = []
        self.noise: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.noise.append(line.decode())

    async def event(self, name: str) -> dict:
        with anyio.fail_after(60):
            while True:
                for line in self.lines:
                    if line["event"] == name:
                        return line
                assert self.process.returncode is None or self.process.stderr is None, (
                    self.noise or self.lines
                )
                await anyio.sleep(0.02)

    async def health(self, path: str) -> tuple[int, dict]:
        port = (await self.event("health.listening"))["port"]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(body)

    async def tally(self) -> dict:
        _, status = await self.health("/statusz")
        (intake,) = status["intakes"].values()
        return intake["tally"]

    async def at_work(self, done: int) -> None:
        await self.event("worker.started")
        with anyio.fail_after(60):
            while (await self.tally())["done"] < done:  # noqa: ASYNC110 - it is another process's count
                await anyio.sleep(0.02)

    async def ended(self) -> int:
        with anyio.fail_after(60):
            await self._reading
            return await self.process.wait()


class Place:
    """Two queues of a test's own, and workers that forward from one to the other."""

    def __init__(self, endpoint: str, queues: Queues, name: str) -> None:
        self.endpoint = endpoint
        self.queues = queues
        self.name = name
        self.inbox = queues.url_of(arn(name))
        self.outbox = queues.url_of(arn(f"{name}-out"))
        self.dlq = queues.url_of(arn(f"{name}-dlq"))
        self.started: list[Process] = []

    async def start(self, **environ: str) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(WORKER),
            stderr=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "AWS_ENDPOINT_URL": self.endpoint,
                "AWS_REGION": REGION,
                "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
                "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
                "SNAVIO_TEST_INBOX": self.inbox,
                "SNAVIO_TEST_OUTBOX": self.outbox,
                "SNAVIO_WAIT_SECONDS": "1",
                "SNAVIO_VISIBILITY_SECONDS": "5",
                **environ,
            },
        )
        started = Process(process)
        self.started.append(started)
        return started

    async def fill(self, count: int) -> set[str]:
        bodies = [f"command-{number}" for number in range(count)]
        for start in range(0, count, 10):
            faults = await self.queues.send(
                self.inbox, [Outgoing(body) for body in bodies[start : start + 10]]
            )
            assert not any(faults)
        return set(bodies)

    async def empty(self, queue: str) -> Counter[str]:
        """Everything visible in a queue now."""
        found: Counter[str] = Counter()
        while messages := await self.queues.receive(queue, wait_seconds=0, visibility_seconds=600):
            found.update(message.body for message in messages)
        return found

    async def collect(self, queue: str, expected: set[str]) -> Counter[str]:
        """Everything that comes, until all that is expected has."""
        found: Counter[str] = Counter()
        with anyio.fail_after(90):
            while expected - found.keys():
                found.update(
                    message.body
                    for message in await self.queues.receive(queue, wait_seconds=1, visibility_seconds=600)
                )
        return found


def arn(queue: str) -> str:
    return f"arn:aws:sqs:{REGION}:000000000000:{queue}"


@pytest.fixture
async def place(aws_endpoint, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", os.environ.get("AWS_ACCESS_KEY_ID", "test"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", os.environ.get("AWS_SECRET_ACCESS_KEY", "test"))
    name = f"runtime-{uuid.uuid4().hex[:12]}"
    async with open_aws(region=REGION, endpoint_url=aws_endpoint) as aws:
        sqs = await aws.client("sqs")
        for queue in (f"{name}-out", f"{name}-dlq"):
            await sqs.create_queue(QueueName=queue)
        redrive = json.dumps({"deadLetterTargetArn": arn(f"{name}-dlq"), "maxReceiveCount": 10})
        await sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})
        place = Place(aws_endpoint, aws.queues, name)
        yield place
        for started in place.started:
            if started.process.returncode is None:
                started.process.kill()
            await started.ended()


async def test_sigterm_under_load_leaves_each_message_in_exactly_one_place_and_exits_0(place):
    sent = await place.fill(300)
    worker = await place.start(
        SNAVIO_TEST_SECONDS_A_BATCH="0.3", SNAVIO_HANDLERS="2", SNAVIO_BATCHES_IN_HAND="8"
    )
    await worker.at_work(done=30)
    assert (await worker.health("/readyz"))[0] == 200
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.ended() == CLEAN
    # Nothing is hidden any more: what was not forwarded can be received at once.
    forwarded, left = await place.empty(place.outbox), await place.empty(place.inbox)
    assert forwarded + left == Counter(sent)
    assert 30 <= len(forwarded) < 300


async def test_sigterm_hands_back_at_once_what_cannot_be_finished_in_time(place):
    sent = await place.fill(40)
    worker = await place.start(
        SNAVIO_TEST_SECONDS_A_BATCH="600", SNAVIO_DRAIN_SECONDS="2", SNAVIO_VISIBILITY_SECONDS="600"
    )
    await worker.event("worker.started")
    with anyio.fail_after(60):
        while (await worker.tally())["received"] < 40:  # noqa: ASYNC110
            await anyio.sleep(0.02)
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.ended() == CLEAN
    assert await place.empty(place.inbox) == Counter(sent)


async def test_sigkill_under_load_loses_nothing(place):
    sent = await place.fill(300)
    slow = {"SNAVIO_TEST_SECONDS_A_BATCH": "0.3", "SNAVIO_HANDLERS": "2"}
    doomed = await place.start(**slow)
    await doomed.at_work(done=10)
    doomed.process.kill()
    assert await doomed.ended() == -signal.SIGKILL
    survivor = await place.start(**slow)
    forwarded = await place.collect(place.outbox, sent)
    assert (await survivor.tally())["done"] > 0
    survivor.process.send_signal(signal.SIGTERM)
    assert await survivor.ended() == CLEAN
    dead, left = await place.empty(place.dlq), await place.empty(place.inbox)
    assert forwarded.keys() == sent
    assert not dead
    assert left.keys() <= sent  # at most what was killed between forwarding and deleting


async def test_the_dead_are_buried_and_what_makes_a_handler_raise_stops_nobody(place):
    sent = await place.fill(20)
    await place.queues.send(place.inbox, [Outgoing("dead"), Outgoing("explode")])
    worker = await place.start()
    assert (await place.collect(place.outbox, sent)).keys() == sent
    assert (await place.collect(place.dlq, {"dead"})).keys() == {"dead"}
    assert (await worker.event("handler.raised"))["error_type"] == "ValueError"
    assert worker.process.returncode is None


async def test_a_failing_background_task_ends_the_process_loudly(place):
    worker = await place.start(SNAVIO_TEST_FAIL="1")
    assert await worker.ended() == FAILED
    failed = await worker.event("worker.failed")
    assert (failed["task"], failed["service"]) == ("obedient", "fast")
    assert "told to fail" in failed["error"]


async def test_wrong_settings_are_named_on_standard_error_before_anything_starts(place):
    worker = await place.start(SNAVIO_POLLS="lots", SNAVIO_FAST_TYPO="1")
    assert await worker.ended() == MISCONFIGURED
    said = "".join(worker.noise)
    assert "SNAVIO_POLLS='lots'" in said
    assert "SNAVIO_FAST_TYPO" in said
    assert not worker.lines


async def test_metrics_reach_cloudwatch_by_the_end_of_a_drain(place):
    await place.fill(10)
    worker = await place.start(SNAVIO_CLOUDWATCH_METRICS="true")
    await worker.at_work(done=10)
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.ended() == CLEAN
    async with open_aws(region=REGION, endpoint_url=place.endpoint) as aws:
        cloudwatch = await aws.client("cloudwatch")
        listed = await cloudwatch.list_metrics(Namespace="Snavio", MetricName="Snavio.Queue.Messages")
    dimensions = [{one["Name"]: one["Value"] for one in metric["Dimensions"]} for metric in listed["Metrics"]]
    assert {"queue": place.name, "outcome": "done"} in dimensions
