"""What the platform uses while time passes, whether commands come or not. Amounts are a second's."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, exp

from snavio.cli.cost.calls import WRITE_BYTES
from snavio.cli.cost.fleet import GB_A_VCPU, POLLS, Fleet
from snavio.cli.cost.workload import Workload

MONTH_SECONDS = 730 * 3600
_HOUR = 3600

# The periods are the defaults of the workers' settings; a test holds them to those.
WAIT_SECONDS = 10
REFRESH_SECONDS = 1.0
STREAM_POLL_SECONDS = 0.25
CHECKPOINT_SECONDS = 1.0
REBALANCE_SECONDS = 3.0
SWEEP_SECONDS = 15.0
LEAD_SECONDS = 2.0
ROUTE_WATCH_SECONDS = 30.0
QUEUE_WATCH_SECONDS = 300.0
SNAPSHOT_SECONDS = 45.0
STATS_SECONDS = 60
DATA_KEY_SECONDS = 300

SHARDS = 4
"""Of the stream of a new table on demand."""
SHARD_WRITES = 1000
"""Writes a second one more shard comes with."""
STATS_UNITS = 4
"""Write units of a window of one worker's counts."""
METRICS = 20
"""What the monitor publishes to CloudWatch."""
HOLDING = 0.2
"""Part of the target queues that hold something when they are looked at: of others no age is asked."""
AUDIT_VCPU, AUDIT_GB = 6, 22
"""A driver and one executor of the audit, always on; see `deploy/emr/audit.json`."""
AUDIT_SECONDS = 60
AUDIT_WINDOWS = 11
"""What each run of the audit asks for: the newest window, and those that late data may still reach."""
STATS_SHARDS = 16
"""Queries a window is read with."""
READ_BYTES = 4096

Use = tuple[str, str, float]
"""Component, meter, amount a second."""


def standing(load: Workload, fleet: Fleet) -> Iterator[Use]:
    """Everything that is used every second."""
    yield "workers", "fargate.vcpu-hours", fleet.vcpu / _HOUR
    yield "workers", "fargate.gb-hours", fleet.vcpu * GB_A_VCPU / _HOUR
    yield from _polls(fleet)
    dispatching = sum(fleet.crews[service].workers for service in ("shield", "fast", "slow"))
    yield "registry refresh", "dynamodb.reads", dispatching / REFRESH_SECONDS
    counting = sum(fleet.crews[service].workers for service in ("fast", "slow"))
    yield "statistics", "dynamodb.writes", counting * STATS_UNITS / STATS_SECONDS
    if load.telemetry:
        yield from _outbox(fleet)
        # Depths of the queue and its DLQ, each after looking up its address; three metrics.
        yield "queue watch", "sqs.requests", load.tenants * 4 / QUEUE_WATCH_SECONDS
        yield "queue watch", "cloudwatch.metrics-asked", load.tenants * 3 / QUEUE_WATCH_SECONDS
    yield from _monitor(load, fleet)
    yield "keys", "kms.key-months", 3 / MONTH_SECONDS
    # One who sends and one who reads a queue: SQS asks twice for the first and once for the second.
    queues = 3 + (load.tenants if load.telemetry else 0)
    yield "keys", "kms.requests", queues * 3 / DATA_KEY_SECONDS
    if load.audit:
        yield "audit", "emr.vcpu-hours", AUDIT_VCPU / _HOUR
        yield "audit", "emr.gb-hours", AUDIT_GB / _HOUR
        yield "audit", "dynamodb.reads", _audit_reads(counting) / AUDIT_SECONDS


def _audit_reads(workers: int) -> float:
    """Read units of a run: every window once, and the newest again for its counts.

    Billed is what items weigh as a whole, also where only their heads are asked for, and at least a unit for a query, also
    where a shard is empty.
    """
    empty = STATS_SHARDS * (1 - 1 / STATS_SHARDS) ** workers
    units = workers * ceil(STATS_UNITS * WRITE_BYTES / READ_BYTES)
    return (AUDIT_WINDOWS + 1) * (units + empty)


def _polls(fleet: Fleet) -> Iterator[Use]:
    """Long polls that come back empty: fewer the more there is to receive."""
    for service in ("shield", "fast", "slow"):
        polls = fleet.crews[service].workers * POLLS
        empty = polls / WAIT_SECONDS * exp(-fleet.per_second[service] * WAIT_SECONDS / polls)
        yield "empty polls", "sqs.requests", empty
        if service != "shield":
            yield "empty polls", "sqs.fair-requests", empty


def _outbox(fleet: Fleet) -> Iterator[Use]:
    rows = fleet.per_second["outbox"]
    shards = max(SHARDS, ceil(2 * rows / SHARD_WRITES))
    # To the tip, then a pause; where something was found, one read more to see the tip.
    found = min(2 * rows / shards, 1 / STREAM_POLL_SECONDS)
    yield "stream", "dynamodb.stream-reads", shards * (1 / STREAM_POLL_SECONDS + found)
    workers = fleet.crews["outbox"].workers
    # Checkpoints; each worker's sign of life; who sweeps, who sends alerts and who watches.
    writes = shards / CHECKPOINT_SECONDS + workers / REBALANCE_SECONDS + 3 * workers / SWEEP_SECONDS
    yield "stream", "dynamodb.writes", writes
    yield "stream", "dynamodb.reads", workers / REBALANCE_SECONDS + 2 / SWEEP_SECONDS


def _monitor(load: Workload, fleet: Fleet) -> Iterator[Use]:
    yield "monitor", "dynamodb.writes", fleet.crews["monitor"].workers / LEAD_SECONDS + 1 / SNAPSHOT_SECONDS
    yield "monitor", "dynamodb.reads", 2 / SNAPSHOT_SECONDS
    yield "monitor", "cloudwatch.metric-months", METRICS / MONTH_SECONDS
    for meter in ("s3.puts", "s3.gets", "kms.signatures"):
        # The pointer to all parts, and those to two of them alone.
        yield "monitor", meter, 3 / SNAPSHOT_SECONDS
    yield "queue watch", "sqs.requests", load.routes / ROUTE_WATCH_SECONDS
    yield "queue watch", "cloudwatch.metrics-asked", HOLDING * load.routes / ROUTE_WATCH_SECONDS
