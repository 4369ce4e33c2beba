"""How fast is put together."""

from __future__ import annotations

from snavio.aws.boto.session import Aws
from snavio.dispatch.delivery import Delivery
from snavio.dispatch.lease_book import LeaseBook
from snavio.dispatch.limit_store import LimitStore
from snavio.dispatch.revocations import report_slipped
from snavio.dispatch.stats_feed import StatsFeed
from snavio.dispatch.wiring import enter_aws, wire_base
from snavio.domain.dedupe import SeenIds
from snavio.domain.fairness import FairnessWindows
from snavio.fast.config import FastConfig
from snavio.fast.handler import FastHandler
from snavio.fast.state import WarmState
from snavio.registry.uses import GrantUses
from snavio.runtime.consumer import ConsumerSettings
from snavio.runtime.worker import Worker


async def wire(config: FastConfig, worker: Worker) -> None:
    """Put fast together on AWS."""
    wire_on(await enter_aws(config, worker), config, worker)


def wire_on(aws: Aws, config: FastConfig, worker: Worker) -> None:
    """Consume the fast queue, with leases and the registry replenished in the background."""
    base = wire_base(aws, config, worker)
    names, now = base.names, worker.now
    limits = LimitStore(aws.tables, names.limits, clock=now, tolerance_seconds=config.clock_tolerance_seconds)
    leases = LeaseBook(
        limits, config.lease_policy, prefetchers=config.prefetchers, clock=now, telemetry=worker.telemetry
    )
    windows = FairnessWindows(worker.worker_id)
    uses = GrantUses()
    feed = StatsFeed(
        aws.tables,
        names.stats,
        worker=worker.worker_id,
        service="fast",
        clock=now,
        log=worker.log,
        telemetry=worker.telemetry,
    )
    report_slipped(base.keeper, uses, base.notices, now)
    handler = FastHandler(
        queues=aws.queues,
        slow_queue=base.queue(names.slow),
        keeper=base.keeper,
        state=WarmState(leases, windows, SeenIds(remember_seconds=config.seen_seconds, most=config.seen_ids)),
        uses=uses,
        delivery=Delivery(aws.queues, config.delivery_policy, clock=now, telemetry=worker.telemetry),
        outbox=base.outbox,
        notices=base.notices,
        feed=feed,
        mode=config.dispatch_mode,
        clock=now,
        log=worker.log,
        telemetry=worker.telemetry,
    )

    async def tidy() -> None:
        windows.forget_past(now())
        uses.settle(base.keeper.registry.as_of)

    worker.consume(
        queues=aws.queues,
        queue=base.queue(names.fast),
        dlq=base.queue(names.dlq(names.fast)),
        handler=handler.handle,
        settings=ConsumerSettings.of(config, handler_batch=config.handler_batch),
    )
    worker.background("replenish-leases", leases.replenish)
    worker.every(1.0, tidy, name="tidy")
    worker.every(5.0, feed.push, name="push-stats")
    worker.on_flush("stats", feed.finish)
