"""How shield is put together."""

from __future__ import annotations

from snavio.aws.boto.session import Aws
from snavio.dispatch.wiring import enter_aws, wire_base
from snavio.runtime.worker import Worker
from snavio.shield.config import ShieldConfig
from snavio.shield.handler import ShieldHandler
from snavio.shield.key_reports import KeyReports
from snavio.shield.tracing import producer_context


async def wire(config: ShieldConfig, worker: Worker) -> None:
    """Put shield together on AWS."""
    wire_on(await enter_aws(config, worker), config, worker)


def wire_on(aws: Aws, config: ShieldConfig, worker: Worker) -> None:
    """Consume the ingress queue."""
    base = wire_base(aws, config, worker, with_keys=True)
    names = base.names
    handler = ShieldHandler(
        queues=aws.queues,
        fast_queue=base.queue(names.fast),
        keeper=base.keeper,
        outbox=base.outbox,
        policy=config.policy,
        key_reports=KeyReports(every_seconds=config.key_report_seconds),
        clock=worker.now,
        log=worker.log,
        telemetry=worker.telemetry,
    )
    worker.consume(
        queues=aws.queues,
        queue=base.queue(names.ingress),
        dlq=base.queue(names.dlq(names.ingress)),
        handler=handler.handle,
        context_of=producer_context,
    )
