"""The periods and sizes the cost model reckons with are those of the settings."""

import json
import re
from pathlib import Path

import anyio
import pytest

from snavio.aws.ports import MAX_BATCH
from snavio.cli.cost import calls, fleet, standing, workload
from snavio.cli.cost.bill import bill_for
from snavio.cli.cost.prices import load_prices
from snavio.domain.screening import ScreeningPolicy
from snavio.fast.config import FastConfig
from snavio.monitor.config import MonitorConfig
from snavio.outbox.batching import MAX_ROWS
from snavio.outbox.config import OutboxConfig
from snavio.outbox.lanes import Lanes
from snavio.outbox.values import Fate, StoredRow
from snavio.provisioning.describe import Settings, describe
from snavio.provisioning.kinds import queues as queue_kind
from snavio.runtime.logs import open_log
from snavio.spark.plan import Lateness, plan
from snavio.spark.reports import Prices
from snavio.spark.watermark import State
from snavio.wire.names import Names
from snavio.wire.stats import SHARDS, WINDOW_SECONDS, window_of

ROOT = Path(__file__).parents[2]


def test_the_model_reckons_with_the_default_settings():
    fast, outbox, monitor = FastConfig(), OutboxConfig(), MonitorConfig()
    reckoned_and_set = {
        "polls": (fleet.POLLS, fast.polls),
        "wait": (standing.WAIT_SECONDS, fast.wait_seconds),
        "refresh": (standing.REFRESH_SECONDS, fast.refresh_seconds),
        "lease": (fleet.LEASE_SECONDS, fast.lease_horizon_seconds),
        "linger": (fleet.LINGER_SECONDS, outbox.linger_seconds),
        "stream": (standing.STREAM_POLL_SECONDS, outbox.poll_seconds),
        "checkpoint": (standing.CHECKPOINT_SECONDS, outbox.checkpoint_seconds),
        "rebalance": (standing.REBALANCE_SECONDS, outbox.rebalance_seconds),
        "sweep": (standing.SWEEP_SECONDS, outbox.sweep_seconds),
        "queues": (standing.QUEUE_WATCH_SECONDS, outbox.watch_seconds),
        "lead": (standing.LEAD_SECONDS, monitor.lease_seconds / 3),
        "routes": (standing.ROUTE_WATCH_SECONDS, monitor.watch_seconds),
        "snapshot": (standing.SNAPSHOT_SECONDS, monitor.snapshot_seconds),
        "stats": (standing.STATS_SECONDS, WINDOW_SECONDS),
        "shards": (standing.STATS_SHARDS, SHARDS),
        "data keys": (standing.DATA_KEY_SECONDS, queue_kind._DATA_KEY_REUSE_SECONDS),
        "skew": (calls.SKEW_SAMPLES, ScreeningPolicy().sample_rate),
        "archive": (calls.ARCHIVE_DAYS, Settings().archive_days),
        "claims": (calls.CLAIM_DAYS, Settings().claim_days),
        "batch": (workload.MAX_BATCH, MAX_BATCH),
        "publish": (workload.MAX_BATCH, MAX_ROWS),
    }
    assert {name: pair for name, pair in reckoned_and_set.items() if pair[0] != pair[1]} == {}


def test_the_model_counts_the_keys_and_queues_that_are_provisioned():
    platform = describe(Names(region="us-east-1"))
    assert len(platform.keys) == 3
    working = [queue for queue in platform.queues if queue.dlq]
    assert len(working) == 3
    assert all(queue.key for queue in working)


def test_the_audit_is_as_large_as_it_is_deployed():
    job = json.loads((ROOT / "deploy/emr/audit.json").read_text())
    settings = dict(re.findall(r"spark\.(\S+?)=(\S+)", job["sparkSubmit"]["sparkSubmitParameters"]))
    assert int(settings["driver.cores"]) + int(settings["executor.cores"]) == standing.AUDIT_VCPU
    heaps = sum(int(settings[f"{part}.memory"].removesuffix("g")) for part in ("driver", "executor"))
    # EMR adds a tenth to each and rounds up to what its workers come in.
    assert heaps * 1.1 <= standing.AUDIT_GB <= heaps * 1.3


def test_the_audit_asks_for_as_many_windows_as_are_reckoned_and_as_often():
    job = json.loads((ROOT / "deploy/emr/audit.json").read_text())
    arguments = job["sparkSubmit"]["entryPointArguments"]
    assert float(arguments[arguments.index("--every") + 1]) == standing.AUDIT_SECONDS
    closed = window_of(1_763_467_200)
    planned = plan(closed + 30.0, State(closed - standing.AUDIT_SECONDS), Lateness())
    assert (planned.end - planned.start, planned.behind) == (standing.AUDIT_WINDOWS * WINDOW_SECONDS, 0)


def test_reading_the_feed_is_on_the_bill():
    load = workload.Workload(rate=1, mix=workload.TYPICAL)
    used = [
        amount
        for component, meter, amount in standing.standing(load, fleet.fleet_for(load))
        if (component, meter) == ("audit", "dynamodb.reads")
    ]
    # Two fast and two slow workers: four shards with a little in them, and twelve or so empty ones, twelve times over.
    assert used == [pytest.approx(12 * 16 / 60, rel=0.05)]


def test_reports_reckon_with_what_the_model_says_at_a_hundred_a_second():
    bill = bill_for(workload.Workload(rate=100, mix=workload.TYPICAL), load_prices())
    of_path = {path: round(cost.total, 2) for path, cost in bill.paths.items()}
    a_day = sum(bill.standing_monthly.values()) / standing.MONTH_SECONDS * 86_400
    assert Prices() == Prices(
        fast=of_path[workload.Path.FAST],
        slow=of_path[workload.Path.SLOW],
        rejected=of_path[workload.Path.REJECTED],
        fixed_a_day=round(a_day, 2),
    )


async def test_outbox_publishes_ten_events_in_a_call_and_removes_each():
    published, removed, settled = [], [], []

    class Topics:
        async def publish(self, tenant, rows):
            published.append(len(rows))
            return [None] * len(rows)

    async def remove(keys):
        removed.append(len(keys))

    class Stream:
        def write(self, text):
            pytest.fail(text)

        def flush(self):
            return

    log = open_log(service="outbox", worker_id="w", level="warning", log_format="json", stream=Stream())
    lanes = Lanes(Topics(), remove, None, log=log)
    rows = [
        StoredRow(
            pk="acme#0",
            sk=str(number),
            tenant="acme",
            event_type="snavio.command.delivered",
            source="acme/billing",
            body="{}",
            written_at=1,
            expires_at=2,
        )
        for number in range(20)
    ]
    for row in rows:
        lanes.offer(row, settled.append)
    async with anyio.create_task_group() as group:
        group.start_soon(lanes.run)
        with anyio.fail_after(10):
            await lanes.flush()
        group.cancel_scope.cancel()
    assert settled == [Fate.DELIVERED] * 20
    load = workload.Workload(rate=1, mix={workload.Path.FAST: 1.0})
    fills = calls.Fills(shield=10, fast=10, slow=10, publish=10)
    counted = {
        (call.action, call.where): call.count / calls.events_of(workload.Path.FAST)
        for call in calls.calls_of(workload.Path.FAST, load, fills)
    }
    assert len(published) == pytest.approx(20 * counted[calls.Action.PUBLISH, "topic"])
    assert sum(removed) == pytest.approx(20 * counted[calls.Action.WRITE, "outbox removal"])
