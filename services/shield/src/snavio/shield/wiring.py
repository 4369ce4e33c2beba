"""How shield is put together."""

from __future__ import annotations

from snavio.dispatch.wiring import wire_base
from snavio.runtime.worker import Worker
from snavio.shield.config import ShieldConfig
from snavio.shield.handler import ShieldHandler
from snavio.shield.key_reports import KeyReports


async def wire(config: ShieldConfig, worker: Worker) -> None:
    """Consume the ingress queue."""
    base = await wire_base(config, worker)
    names = base.names
    handler = ShieldHandler(
        queues=base.aws.queues,
        fast_queue=base.queue(names.fast),
        keeper=base.keeper,
        outbox=base.outbox,
        policy=config.policy,
        key_reports=KeyReports(every_seconds=config.key_report_seconds),
        clock=worker.now,
        telemetry=worker.telemetry,
    )
    worker.consume(
        queues=base.aws.queues,
        queue=base.queue(names.ingress),
        dlq=base.queue(names.dlq(names.ingress)),
        handler=handler.handle,
    )
