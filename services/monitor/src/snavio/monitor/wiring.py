"""How the monitor is put together."""

from __future__ import annotations

from snavio.aws.boto.session import Aws
from snavio.aws.errors import SnavioError
from snavio.dispatch.cache_metrics import CacheMetrics
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.dispatch.wiring import enter_aws
from snavio.monitor.config import MonitorConfig
from snavio.monitor.duties import Duties
from snavio.monitor.queue_reader import QueueReader
from snavio.monitor.route_watch import Readings, RouteWatch
from snavio.monitor.snapshotting import Snapshotting
from snavio.monitor.upkeep import Upkeep
from snavio.registry.keeper import Keeper
from snavio.registry.sealing import Sealer
from snavio.registry.snapshot_publisher import SnapshotPublisher
from snavio.registry.snapshot_signing import KmsSigner, Signer
from snavio.registry.store import RegistryStore
from snavio.runtime.leadership import Leadership
from snavio.runtime.worker import Worker

_REWRITE_SECONDS = 300.0


async def wire(config: MonitorConfig, worker: Worker) -> None:
    """Put the monitor together on AWS."""
    aws = await enter_aws(config, worker)
    for service in ("sqs", "cloudwatch", "kms"):
        await aws.client(service)  # opened here, so that it is not closed by the task that needs it first
    names = config.names
    reader = QueueReader(aws.client, aws.queues, names, with_ages=config.queue_ages)
    wire_on(aws, config, worker, reader=reader, signer=KmsSigner(aws.client, names.snapshots_key))


def wire_on(aws: Aws, config: MonitorConfig, worker: Worker, *, reader: Readings, signer: Signer) -> Duties:
    """Lead, or stand by to."""
    names, now = config.names, worker.now
    outbox = OutboxWriter(
        aws.tables, names.outbox, clock=now, retention_seconds=config.outbox_retention_seconds
    )
    leadership = Leadership(
        aws.tables, names.leases, "monitor", me=worker.worker_id, seconds=config.lease_seconds, now=now
    )
    sealer = Sealer(aws.vault)
    store = RegistryStore(aws.tables, names, clock=now)
    # From the table, never from a snapshot: what is published must not descend from what was published.
    keeper = Keeper(
        aws.tables,
        names,
        sealer,
        ttls=config.ttls,
        clock=now,
        observer=CacheMetrics(worker.telemetry, worker.log, config.ttls),
        segments=config.load_segments,
    )
    watch = RouteWatch(
        reader,
        aws.tables,
        names.control,
        outbox,
        term=lambda: leadership.term,
        clock=now,
        log=worker.log,
        telemetry=worker.telemetry,
        rewrite_seconds=_REWRITE_SECONDS,
    )
    publisher = SnapshotPublisher(
        aws.objects,
        aws.tables,
        names,
        signer,
        ttls=config.ttls,
        max_bytes=config.snapshot_max_bytes,
        keep_seconds=config.snapshot_keep_seconds,
        clock=now,
    )
    snapshotting = Snapshotting(
        publisher,
        outbox,
        clock=now,
        log=worker.log,
        telemetry=worker.telemetry,
        again_seconds=config.alert_again_seconds,
    )
    upkeep = Upkeep(
        store,
        sealer,
        names,
        outbox,
        config.upkeep_policy,
        clock=now,
        log=worker.log,
    )
    duties = Duties(leadership, keeper, watch, snapshotting, upkeep, log=worker.log)
    tolerated = (SnavioError,)
    worker.every(config.lease_seconds / 3, duties.lead, name="lead", tolerate=tolerated, at_once=True)
    worker.every(config.watch_seconds, duties.watch_routes, name="watch-routes", tolerate=tolerated)
    if config.snapshots:
        worker.every(
            config.snapshot_seconds, duties.publish_snapshot, name="publish-snapshot", tolerate=tolerated
        )
    worker.every(config.upkeep_seconds, duties.keep_up, name="keep-up", tolerate=tolerated)
    worker.on_flush("lead", leadership.resign)
    return duties
