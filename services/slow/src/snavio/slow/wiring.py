"""How slow is put together."""

from __future__ import annotations

from snavio.aws.boto.session import Aws
from snavio.dispatch.claim_store import ClaimStore
from snavio.dispatch.delivery import Delivery
from snavio.dispatch.limit_store import LimitStore
from snavio.dispatch.revocations import report_slipped
from snavio.dispatch.stats_feed import StatsFeed
from snavio.dispatch.wiring import enter_aws, wire_base
from snavio.domain.fairness import FairnessWindows
from snavio.registry.store import RegistryStore
from snavio.registry.uses import GrantUses
from snavio.runtime.worker import Worker
from snavio.slow.ban_counter import BanCounter
from snavio.slow.claims import Claims
from snavio.slow.config import SlowConfig
from snavio.slow.handler import SlowHandler
from snavio.slow.limits import Limits
from snavio.slow.sending import Sending


async def wire(config: SlowConfig, worker: Worker) -> None:
    """Put slow together on AWS."""
    wire_on(await enter_aws(config, worker), config, worker)


def wire_on(aws: Aws, config: SlowConfig, worker: Worker) -> None:
    """Consume the slow queue."""
    base = wire_base(aws, config, worker)
    names, now, keeper = base.names, worker.now, base.keeper
    limit_store = LimitStore(
        aws.tables, names.limits, clock=now, tolerance_seconds=config.clock_tolerance_seconds
    )
    claim_store = ClaimStore(aws.tables, names.dedupe, config.dedupe_policy, clock=now)
    registry_store = RegistryStore(aws.tables, names, clock=now)
    windows = FairnessWindows(worker.worker_id)
    uses = GrantUses()
    feed = StatsFeed(
        aws.tables,
        names.stats,
        worker=worker.worker_id,
        service="slow",
        clock=now,
        log=worker.log,
        telemetry=worker.telemetry,
    )
    report_slipped(keeper, uses, base.notices, now)
    parking = base.queue(names.dlq(names.slow))
    handler = SlowHandler(
        keeper=keeper,
        claims=Claims(claim_store, clock=now, telemetry=worker.telemetry),
        limits=Limits(limit_store, keeper, windows, clock=now),
        sending=Sending(
            Delivery(aws.queues, config.delivery_policy, clock=now, telemetry=worker.telemetry),
            aws.objects,
            names.bucket,
            uses,
            config.retry_policy,
            keeper,
            clock=now,
        ),
        bans=BanCounter(aws.tables, names.bans, registry_store, config.ban_policy, clock=now),
        windows=windows,
        outbox=base.outbox,
        queues=aws.queues,
        parking=parking,
        feed=feed,
        clock=now,
        log=worker.log,
        telemetry=worker.telemetry,
    )

    async def tidy() -> None:
        windows.forget_past(now())
        uses.settle(keeper.registry.as_of)

    worker.consume(queues=aws.queues, queue=base.queue(names.slow), dlq=parking, handler=handler.handle)
    worker.every(1.0, tidy, name="tidy")
    worker.every(5.0, feed.push, name="push-stats")
    worker.on_flush("stats", feed.finish)
