"""What else could be done: the same job in Lambda functions, and no job at all, a rule of EventBridge into a queue."""

from __future__ import annotations

from collections.abc import Iterator

from snavio.cli.cost.calls import (
    DELIVERED,
    ENVELOPE_BYTES,
    EVENT_BYTES,
    LOG_LINE_BYTES,
    Action,
    Call,
    Fills,
    metered,
    queues_in_a_batch,
)
from snavio.cli.cost.workload import Path, Workload

MEMORY_GB = 0.5
CALL_SECONDS = 0.01
"""One call to AWS from a function, which is paid for while it waits."""
COMMAND_SECONDS = 0.001
"""Checking one command in Python, half a vCPU."""
READS = 4
"""Key, grant, route and ban: read for each command, since nothing keeps a function's memory current."""
IDLE_POLLS = 5 / 20
"""Empty long polls a second: Lambda keeps five for a queue, each of twenty seconds."""

Use = tuple[str, str, float]


def lambda_usage(path: Path, load: Workload, fills: Fills) -> Iterator[Use]:
    """What one command uses when functions do the work: one reads ingress and decides, one publishes telemetry.

    The batches are as full as Snavio's, the telemetry is the same, and limits and dedupe are counted in the same tables.
    """
    size = load.payload(path) + ENVELOPE_BYTES
    fill = fills.shield
    calls = [
        Call(component="bus", action=Action.PUT_EVENT, where="bus", count=1, size=size),
        Call(component="archive", action=Action.ARCHIVE, where="archive", count=1, size=size),
        Call(component="bus", action=Action.SEND, where="ingress", count=1, size=size),
        Call(component="function", action=Action.RECEIVE, where="ingress", count=1 / fill, size=fill * size),
        Call(component="function", action=Action.DELETE, where="ingress", count=1 / fill),
        Call(component="registry", action=Action.READ, where="registry", count=READS),
        Call(component="logs", action=Action.LOG, where="logs", count=1 / fill, size=LOG_LINE_BYTES),
    ]
    if path in DELIVERED:
        held = fill / queues_in_a_batch(fill, load.targets)
        calls.append(
            Call(component="function", action=Action.SEND, where="target", count=1 / held, size=held * size)
        )
    if path is Path.CLAIM_CHECK:
        calls.append(
            Call(
                component="claim check",
                action=Action.PUT_OBJECT,
                where="claims",
                count=1,
                size=load.payload(path),
            )
        )
    if path is Path.STRICT:
        calls.append(Call(component="dedupe", action=Action.WRITE, where="dedupe", count=2))
    if path is Path.LIMITED:
        calls.append(Call(component="limits", action=Action.WRITE, where="limits", count=1))
    if load.telemetry:
        calls += _telemetry(fills)
    for call in calls:
        for meter, amount in metered(call).items():
            yield call.component, meter, amount
    # Read the registry, decide, deliver, write what became of it.
    seconds = 3 * CALL_SECONDS / fill + COMMAND_SECONDS
    yield "function", "lambda.requests", 1 / fill
    yield "function", "lambda.gb-seconds", MEMORY_GB * seconds
    if load.telemetry:
        yield "telemetry", "lambda.requests", 1 / fills.publish
        yield (
            "telemetry",
            "lambda.gb-seconds",
            MEMORY_GB * (CALL_SECONDS / fills.publish + COMMAND_SECONDS / 10),
        )


def lambda_standing() -> Iterator[Use]:
    """What functions cost while nothing happens."""
    yield "empty polls", "sqs.requests", IDLE_POLLS


def plain_usage(path: Path, load: Workload) -> Iterator[Use]:
    """A rule of EventBridge into the target's queue: no proof of who sent it, no limits, no telemetry."""
    size = load.payload(path) + ENVELOPE_BYTES
    for action, where in ((Action.PUT_EVENT, "bus"), (Action.ARCHIVE, "archive"), (Action.SEND, "target")):
        call = Call(component=where, action=action, where=where, count=1, size=size)
        for meter, amount in metered(call).items():
            yield call.component, meter, amount


def _telemetry(fills: Fills) -> list[Call]:
    fill = fills.publish
    return [
        # Reading the stream is free for a function, and its rows may be left to expire.
        Call(component="outbox", action=Action.WRITE, where="outbox", count=1, size=EVENT_BYTES),
        Call(
            component="telemetry",
            action=Action.PUBLISH,
            where="topic",
            count=1 / fill,
            size=fill * EVENT_BYTES,
        ),
        Call(component="telemetry", action=Action.SEND, where="telemetry", count=1, size=EVENT_BYTES),
        Call(
            component="telemetry",
            action=Action.RECEIVE,
            where="telemetry",
            count=1 / fill,
            size=fill * EVENT_BYTES,
        ),
        Call(component="telemetry", action=Action.DELETE, where="telemetry", count=1 / fill),
    ]
