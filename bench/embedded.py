"""The same on the embedded AWS, which is one process and the limit of all of it; and end to end, beside plain EventBridge.

Commands are sent by a schedule fixed in advance and timed from the moment they were due, whether or not anything before
them was late (an open loop), to the moment the target's queue says it took them in.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiobotocore.session import AioSession
from figures import Row, Sizes, spread
from live_platform import Live, WorkerProcess, live
from processes import CREDENTIALS, HERE, PATIENCE_SECONDS, Process
from samples import NAME, PAYLOAD

from snavio.aws.values import Outgoing
from snavio.embedded.launch import embedded_aws
from snavio.embedded.testing import Installation
from snavio.provisioning.apply import apply
from snavio.provisioning.describe import describe
from snavio.wire.canonical import canonical
from snavio.wire.commands import Admitted, encode
from snavio.wire.names import Names
from snavio.wire.times import format_time

THROUGHPUT = "Warm dispatch, embedded AWS (which is the limit)"
END_TO_END = "Latency end to end, open loop, embedded AWS"
DEPTH = "Growth of a receive with the backlog, embedded AWS"
SOURCE, TARGET = "acme/billing", "discord-bot"
ROUNDS = 3
WAITING = "ApproximateNumberOfMessages"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Everything on one embedded AWS."""
    with tempfile.TemporaryDirectory() as folder, embedded_aws(Path(folder) / "aws") as url:
        yield from asyncio.run(_measure(url, Path(folder), sizes))


async def _measure(url: str, folder: Path, sizes: Sizes) -> list[Row]:
    session: Any = AioSession()
    session.set_credentials(*CREDENTIALS.values())
    names = Names(prefix="bench", region="us-east-1", account="000000000000")
    await apply(describe(names), session, endpoint_url=url)
    installation = Installation(names, url, session)
    async with live(installation) as world:
        await world.service(SOURCE)
        target = await world.route(TARGET, NAME, SOURCE)
        with (folder / "workers.log").open("w") as log:
            rows = await throughput(world, target, log, sizes)
            rows += await end_to_end(world, target, log, sizes)
        return rows + await receive_by_depth(world, sizes)


async def throughput(world: Live, target: str, log: Any, sizes: Sizes) -> list[Row]:
    """How fast each empties a queue, by when the target's queue took the messages in; the others are stopped meanwhile."""
    sqs, url = await world.aws.client("sqs"), world.installation.endpoint_url
    queues = {"fast": world.installation.queue_url(world.names.fast)}
    for kind in ("lean", "aiobotocore"):
        queues[kind] = (await sqs.create_queue(QueueName=f"bare-{kind}"))["QueueUrl"]
    rates: dict[str, list[float]] = {kind: [] for kind in queues}
    processes = {"fast": WorkerProcess(world.installation, "fast", log, SNAVIO_POLLS="8").process}
    for kind in ("lean", "aiobotocore"):
        processes[kind] = Process(str(HERE / "forwarders.py"), kind, url, queues[kind], target).popen
    try:
        for kind, process in processes.items():
            await warm(world, queues[kind], target)
            process.send_signal(signal.SIGSTOP)
        for _ in range(min(ROUNDS, sizes.dispatch_rounds)):
            for kind, process in processes.items():
                await fill(world, queues[kind], sizes.embedded_messages)
                process.send_signal(signal.SIGCONT)
                times = sorted(moment for _, moment in await arrivals(world, target, sizes.embedded_messages))
                process.send_signal(signal.SIGSTOP)
                rates[kind].append((len(times) - 1) / max(times[-1] - times[0], 0.001))
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
    found = {kind: statistics.median(samples) for kind, samples in rates.items()}
    rows = [
        ("bare forwarder, aiobotocore", "aiobotocore", "", None),
        ("bare forwarder, lean client", "lean", "aiobotocore's", "aiobotocore"),
        ("fast, governed", "fast", "the lean forwarder's", "lean"),
    ]
    return [
        Row(
            section=THROUGHPUT,
            what=what,
            value=round(found[kind]),
            unit="msg/s",
            beside=beside,
            ratio=round(found[kind] / found[other], 2) if other else None,
            note="what a call costs the emulator decides most of it",
        )
        for what, kind, beside, other in rows
    ]


async def warm(world: Live, queue: str, target: str) -> None:
    """Send single messages until one comes out at the other end: a worker that has just started leaves them to slow."""
    sqs, deadline = await world.aws.client("sqs"), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        await fill(world, queue, 1)
        await asyncio.sleep(0.5)
        answer = await sqs.get_queue_attributes(QueueUrl=target, AttributeNames=[WAITING])
        if int(answer["Attributes"][WAITING]):
            # What is still on its way must not be counted with the first round.
            await asyncio.sleep(1.0)
            await arrivals(world, target, 0)
            return
    raise SystemExit(f"nobody consumes {queue}")


async def fill(world: Live, queue: str, count: int) -> None:
    """Put admitted commands in a queue."""
    now = time.time()
    for start in range(0, count, 10):
        batch = [
            Outgoing(
                encode(
                    Admitted(
                        source=SOURCE,
                        id=str(uuid.uuid4()),
                        timestamp=format_time(now),
                        target=TARGET,
                        name=NAME,
                        received_at=now,
                        payload=msgspec.Raw(canonical(PAYLOAD)),
                    )
                )
            )
            for _ in range(min(10, count - start))
        ]
        await world.aws.queues.send(queue, batch)


async def arrivals(world: Live, queue: str, count: int) -> list[tuple[str, float]]:
    """Wait until so many messages are in a queue, then take them out: each body, and when the queue took it in."""
    sqs, deadline = await world.aws.client("sqs"), time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = await sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=[WAITING])
        if int(answer["Attributes"][WAITING]) >= count:
            break
        if time.monotonic() > deadline:
            raise SystemExit(f"only {answer['Attributes'][WAITING]} of {count} messages arrived in {queue}")
        await asyncio.sleep(0.25)
    found: list[tuple[str, float]] = []
    while batch := await world.aws.queues.receive(queue, wait_seconds=0):
        found += [(message.body, message.sent_at) for message in batch]
        await world.aws.queues.delete(queue, [message.receipt for message in batch])
    return found


@asynccontextmanager
async def plain_rule(world: Live) -> AsyncIterator[tuple[str, str]]:
    """A bus with a rule to a queue, as one would set it up without Snavio: the bus and the queue's URL."""
    sqs, events = await world.aws.client("sqs"), await world.aws.client("events")
    queue = (await sqs.create_queue(QueueName="plain"))["QueueUrl"]
    await events.create_event_bus(Name="plain")
    await events.put_rule(Name="plain", EventBusName="plain", EventPattern='{"source":[{"prefix":""}]}')
    arn = world.names.queue_arn("plain")
    await events.put_targets(Rule="plain", EventBusName="plain", Targets=[{"Id": "1", "Arn": arn}])
    yield "plain", queue


async def end_to_end(world: Live, target: str, log: Any, sizes: Sizes) -> list[Row]:
    """PutEvents to the target's queue, through shield and fast, and through a plain rule, turn by turn on one schedule."""
    workers = [
        WorkerProcess(world.installation, service, log) for service in ("shield", "fast", "slow", "outbox")
    ]
    try:
        async with plain_rule(world) as (bus, plain):
            paths: set[str] = set()
            while "fast" not in paths:  # until it is warm
                await world.send([world.entry(SOURCE, TARGET, NAME, PAYLOAD)])
                came = await arrivals(world, target, 1)
                paths = {msgspec.json.decode(body)["metadata"]["path"] for body, _ in came}
            count = max(2, int(sizes.embedded_rate * sizes.embedded_seconds))
            due = await send_by_schedule(world, bus, count, sizes.embedded_rate)
            through, beside = (
                await arrivals(world, target, count // 2),
                await arrivals(world, plain, count // 2),
            )
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.wait(PATIENCE_SECONDS)
    snavio = spread(moment - due[_id(msgspec.json.decode(body))] for body, moment in through)
    bare = spread(moment - due[_id(msgspec.json.decode(body)["detail"])] for body, moment in beside)
    rate = f"{sizes.embedded_rate / 2:g} a second, {count // 2} of each"
    rows = [
        Row(
            section=END_TO_END,
            what=f"plain EventBridge → SQS: {name}",
            value=round(value, 1),
            unit="ms",
            note=rate,
        )
        for name, value in bare.items()
    ]
    return rows + [
        Row(
            section=END_TO_END,
            what=f"Snavio, bus → shield → fast → target: {name}",
            value=round(value, 1),
            unit="ms",
            beside="plain EventBridge → SQS",
            ratio=round(value / bare[name], 2),
            target="< 150 ms" if name == "mean" else "",
            met=value < 150 if name == "mean" else None,
            note=f"two hops more, and this emulator answers a waiting poll within 100 ms, not at once; {rate}",
        )
        for name, value in snavio.items()
    ]


async def send_by_schedule(world: Live, bus: str, count: int, rate: float) -> dict[str, float]:
    """Send each command when it is due, whatever became of those before; when each was due, by its id."""
    events = await world.aws.client("events")
    due: dict[str, float] = {}
    async with asyncio.TaskGroup() as sending:
        started = time.time() + 0.1
        for number in range(count):
            moment = started + number / rate
            await asyncio.sleep(max(0.0, moment - time.time()))
            entry = world.entry(SOURCE, TARGET, NAME, PAYLOAD)
            due[_id(msgspec.json.decode(entry["Detail"]))] = moment
            if number % 2:
                entry["EventBusName"] = bus
            sending.create_task(events.put_events(Entries=[entry]))
    return due


async def receive_by_depth(world: Live, sizes: Sizes) -> list[Row]:
    """What one receive takes with so many messages waiting: the emulator's cost, to be known when reading the rest."""
    sqs = await world.aws.client("sqs")
    rows: list[Row] = []
    for depth in sizes.depths:
        queue = (await sqs.create_queue(QueueName=f"depth-{depth}"))["QueueUrl"]
        await fill(world, queue, depth)
        samples: list[float] = []
        for _ in range(min(15, depth // 10)):
            started = time.perf_counter()
            await world.aws.queues.receive(queue, wait_seconds=0)
            samples.append((time.perf_counter() - started) * 1000)
        first = rows[0].value if rows else None
        value = round(statistics.median(samples), 2)
        rows.append(
            Row(
                section=DEPTH,
                what=f"one receive of ten, {depth:,} waiting",
                value=value,
                unit="ms",
                beside=f"{sizes.depths[0]:,} waiting" if first else "",
                ratio=round(value / first, 2) if first else None,
                note="the emulator's own",
            )
        )
    return rows


def _id(detail: Any) -> str:
    return detail["metadata"]["id"]
