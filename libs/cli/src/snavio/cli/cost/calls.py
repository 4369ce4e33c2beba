"""The AWS calls one command makes on each path.

This is what the code of shield, fast, slow and outbox does, as numbers; `tests/cost` runs commands through the real
workers and fails when they make other calls than these.
"""

from __future__ import annotations

from enum import StrEnum
from math import ceil

import msgspec

from snavio.cli.cost.workload import MAX_BATCH, Path, Workload

CHUNK_BYTES = 65_536
"""What EventBridge, SQS and SNS bill as one request."""
WRITE_BYTES = 1024
SQS_BATCH_BYTES = 1_048_576
GB = 1e9
ENVELOPE_BYTES = 700
"""What a command weighs beside its payload, on the bus and in any queue."""
REFERENCE_BYTES = 300
"""What stands in the place of a payload left in S3."""
EVENT_BYTES = 700
"""A telemetry event with its attributes; and its row, which fits into one write unit."""
LOG_LINE_BYTES = 500
SKEW_SAMPLES = 0.01
"""Part of the genuine commands whose clock skew is reported."""
ARCHIVE_DAYS = 14
CLAIM_DAYS = 15


class Action(StrEnum):
    """A kind of call."""

    PUT_EVENT = "put event"
    ARCHIVE = "archive"
    RECEIVE = "receive"
    SEND = "send"
    DELETE = "delete"
    WRITE = "write"
    READ = "read"
    PUBLISH = "publish"
    PUT_OBJECT = "put object"
    LOG = "log"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """So many calls a command."""

    component: str
    """Under what heading the bill shows it."""
    action: Action
    where: str
    """The queue, table, topic or bucket."""
    count: float
    """Calls a command; below one where one call serves several commands."""
    size: float = 0.0
    """Bytes in one call."""


class Fills(msgspec.Struct, frozen=True, kw_only=True):
    """How well batches are filled at a load."""

    shield: float
    fast: float
    slow: float
    publish: float
    lease: float = 1.0
    """Commands served by one lease."""


LEFT_TO_SLOW = frozenset({Path.SLOW, Path.STRICT, Path.CLAIM_CHECK, Path.REJECTED})
DELIVERED = frozenset(Path) - {Path.INVALID, Path.REJECTED}


def calls_of(path: Path, load: Workload, fills: Fills) -> list[Call]:
    """Every call one command on this path makes, from the bus to the tenant's telemetry queue."""
    size = load.payload(path) + ENVELOPE_BYTES
    calls = [
        Call(component="bus", action=Action.PUT_EVENT, where="bus", count=1, size=size),
        Call(component="archive", action=Action.ARCHIVE, where="archive", count=1, size=size),
        Call(component="bus", action=Action.SEND, where="ingress", count=1, size=size),
        *_taken("shield", "ingress", fills.shield, size),
    ]
    if path is not Path.INVALID:
        calls += [
            _batch("shield", Action.SEND, "fast", fills.shield, size),
            *_taken("fast", "fast", fills.fast, size),
        ]
    if path in LEFT_TO_SLOW:
        calls += [
            _batch("fast", Action.SEND, "slow", fills.fast, size),
            *_taken("slow", "slow", fills.slow, size),
        ]
    if path in DELIVERED:
        calls += _delivery(path, load, fills)
    calls += _rules(path, fills)
    if load.telemetry:
        calls += _telemetry(path, fills)
    if path in {Path.INVALID, Path.REJECTED}:
        calls.append(Call(component="logs", action=Action.LOG, where="logs", count=1, size=LOG_LINE_BYTES))
    return calls


def events_of(path: Path) -> float:
    """Telemetry events one command leads to."""
    if path is Path.INVALID:
        return 1.0
    return (2.0 if path in LEFT_TO_SLOW else 1.0) + SKEW_SAMPLES


def queues_in_a_batch(batch: float, targets: int) -> float:
    """How many different queues the commands of a batch are for, when each is as likely."""
    return targets * (1.0 - (1.0 - 1.0 / targets) ** batch)


def _batch(component: str, action: Action, where: str, fill: float, size: float) -> Call:
    held = min(fill, max(1.0, SQS_BATCH_BYTES // size)) if size else fill
    return Call(component=component, action=action, where=where, count=1 / held, size=held * size)


def _taken(component: str, queue: str, fill: float, size: float) -> list[Call]:
    return [
        _batch(component, Action.RECEIVE, queue, fill, size),
        Call(component=component, action=Action.DELETE, where=queue, count=1 / fill),
    ]


def _delivery(path: Path, load: Workload, fills: Fills) -> list[Call]:
    worker, fill = ("slow", fills.slow) if path in LEFT_TO_SLOW else ("fast", fills.fast)
    by_claim = path is Path.CLAIM_CHECK
    size = ENVELOPE_BYTES + (REFERENCE_BYTES if by_claim else load.payload(path))
    calls = [_batch(worker, Action.SEND, "target", fill / queues_in_a_batch(fill, load.targets), size)]
    if by_claim:
        body = load.payload(path)
        calls.append(
            Call(component="claim check", action=Action.PUT_OBJECT, where="claims", count=1, size=body)
        )
    return calls


def _rules(path: Path, fills: Fills) -> list[Call]:
    """What dedupe, limits and refusals ask of DynamoDB."""
    match path:
        case Path.STRICT:
            # The claim, then its commit: two conditional writes, no transaction. What expires goes for nothing.
            return [Call(component="dedupe", action=Action.WRITE, where="dedupe", count=2)]
        case Path.LIMITED:
            # A slot among those who prefetch, then the reservation.
            return [Call(component="limits", action=Action.WRITE, where="limits", count=2 / fills.lease)]
        case Path.REJECTED:
            # Nothing is refused but on a registry read since.
            return [Call(component="slow", action=Action.READ, where="changelog", count=1 / fills.slow)]
        case _:
            return []


def _telemetry(path: Path, fills: Fills) -> list[Call]:
    events = events_of(path)
    reading = min(fills.publish, MAX_BATCH)
    return [
        # Written, and removed once it is published.
        Call(component="outbox", action=Action.WRITE, where="outbox", count=events, size=EVENT_BYTES),
        Call(component="outbox", action=Action.WRITE, where="outbox removal", count=events, size=EVENT_BYTES),
        Call(
            component="telemetry",
            action=Action.PUBLISH,
            where="topic",
            count=events / fills.publish,
            size=fills.publish * EVENT_BYTES,
        ),
        Call(component="telemetry", action=Action.SEND, where="telemetry", count=events, size=EVENT_BYTES),
        Call(
            component="telemetry",
            action=Action.RECEIVE,
            where="telemetry",
            count=events / reading,
            size=reading * EVENT_BYTES,
        ),
        Call(component="telemetry", action=Action.DELETE, where="telemetry", count=events / reading),
    ]


def metered(call: Call) -> dict[str, float]:
    """What AWS counts of a call: meters with amounts, a command."""
    chunks = call.count * max(1, ceil(call.size / CHUNK_BYTES))
    total = call.count * call.size
    match call.action:
        case Action.PUT_EVENT:
            return {"eventbridge.events": chunks}
        case Action.ARCHIVE:
            kept = total / GB * ARCHIVE_DAYS / 30
            return {"eventbridge.archived-gb": total / GB, "eventbridge.archive-gb-months": kept}
        case Action.SEND | Action.RECEIVE | Action.DELETE:
            # Shield and fast group messages by tenant, which makes their queues fair ones.
            fair = {"sqs.fair-requests": chunks} if call.where in {"fast", "slow"} else {}
            return {"sqs.requests": chunks, **fair}
        case Action.WRITE:
            return {"dynamodb.writes": call.count * max(1, ceil(call.size / WRITE_BYTES))}
        case Action.READ:
            return {"dynamodb.reads": call.count}
        case Action.PUBLISH:
            return {"sns.publishes": chunks}
        case Action.PUT_OBJECT:
            return {"s3.puts": call.count, "s3.gb-months": total / GB * CLAIM_DAYS / 30}
        case Action.LOG:
            return {"cloudwatch.log-gb": total / GB}
