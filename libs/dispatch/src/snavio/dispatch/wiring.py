"""What shield, fast and slow set up alike: AWS, the registry kept current, and the outbox."""

from __future__ import annotations

import anyio
import msgspec

from snavio.aws.boto.session import Aws, open_aws
from snavio.aws.errors import SnavioError
from snavio.dispatch.cache_metrics import CacheMetrics
from snavio.dispatch.config import DispatchConfig
from snavio.dispatch.notices import Notices
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.dispatch.snapshot_metrics import SnapshotMetrics
from snavio.registry.keeper import Keeper
from snavio.registry.sealing import Sealer
from snavio.registry.snapshot_signing import KmsSigner
from snavio.registry.snapshots import SnapshotReader
from snavio.runtime.log_events import LogEvent
from snavio.runtime.worker import Worker
from snavio.wire.names import Names

_FIRST_PAUSE_SECONDS = 1.0
_LAST_PAUSE_SECONDS = 0.2


class Base(msgspec.Struct, frozen=True):
    """What every dispatching worker stands on."""

    aws: Aws
    names: Names
    keeper: Keeper
    outbox: OutboxWriter
    notices: Notices

    def queue(self, name: str) -> str:
        """The URL of one of the platform's own queues."""
        return self.aws.queues.url_of(self.names.queue_arn(name))


async def enter_aws(config: DispatchConfig, worker: Worker) -> Aws:
    """AWS, open for as long as the worker lives."""
    return await worker.enter(open_aws(region=config.region, endpoint_url=config.endpoint))


def _snapshots(aws: Aws, config: DispatchConfig, worker: Worker) -> SnapshotReader:
    names = config.names
    return SnapshotReader(
        aws.objects,
        aws.tables,
        names,
        KmsSigner(aws.client, names.snapshots_key),
        config.snapshot_policy,
        clock=worker.now,
        observer=SnapshotMetrics(worker.telemetry, worker.log),
    )


def wire_base(aws: Aws, config: DispatchConfig, worker: Worker, *, with_keys: bool = False) -> Base:
    """Keep the registry current in the background, and record notices as they come.

    Only a worker that verifies signatures is given keys, and needs the right to open them.
    """
    names = config.names
    ttls = config.ttls.jittered(worker.roll() * config.ttl_jitter)
    observer = CacheMetrics(worker.telemetry, worker.log, ttls)
    keeper = Keeper(
        aws.tables,
        names,
        Sealer(aws.vault) if with_keys else None,
        ttls=ttls,
        clock=worker.now,
        observer=observer,
        snapshots=_snapshots(aws, config, worker) if config.snapshots else None,
        segments=config.load_segments,
    )
    outbox = OutboxWriter(
        aws.tables, names.outbox, clock=worker.now, retention_seconds=config.outbox_retention_seconds
    )
    notices = Notices(
        outbox, on_lost=lambda count: worker.log.error(LogEvent.OUTBOX_WRITE_FAILED, lost_events=count)
    )
    report_usage = observer.report_usage(lambda: keeper.registry)

    async def refresh() -> None:
        await keeper.refresh()
        report_usage()

    async def flush_notices() -> None:
        await notices.flush()

    async def first_look() -> None:
        # A worker that knows nothing yet could only hand on or hand back whatever it took: others do better.
        while not keeper.loaded and not await keeper.refresh():  # noqa: ASYNC110 - as below
            await anyio.sleep(_FIRST_PAUSE_SECONDS)

    async def last_look() -> None:
        # A revocation that came while draining is still to be reported, and nobody else knows what went through here.
        while not await keeper.refresh():  # noqa: ASYNC110 - nobody would tell when the table answers again
            await anyio.sleep(_LAST_PAUSE_SECONDS)
        report_usage()

    async def last_notices() -> None:
        while True:
            try:
                return await notices.flush()
            except SnavioError:
                await anyio.sleep(_LAST_PAUSE_SECONDS)

    worker.ready("registry", lambda: None if keeper.loaded else observer.last_failure or "not loaded yet")
    worker.first(first_look)
    worker.every(config.refresh_seconds, refresh, name="refresh-registry")
    worker.every(0.5, flush_notices, name="record-notices", tolerate=(SnavioError,))
    # Both try until their share of the flush is over; what was not done by then is logged as such.
    worker.on_flush("registry", last_look)
    worker.on_flush("notices", last_notices)
    return Base(aws, names, keeper, outbox, notices)
