"""How the outbox worker is put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snavio.aws.boto.session import Aws, open_aws
from snavio.aws.errors import NotFound, Transient
from snavio.outbox.alert_choices import AlertChoices
from snavio.outbox.alert_sender import AlertSender
from snavio.outbox.boto.rows import DynamoRows
from snavio.outbox.boto.stream import DynamoStream
from snavio.outbox.boto.topics import SnsTopics
from snavio.outbox.carrier import Carrier
from snavio.outbox.failures import Failures
from snavio.outbox.intake import StreamIntake
from snavio.outbox.lanes import Lanes
from snavio.outbox.mail import Mails
from snavio.outbox.notebook import Notebook
from snavio.outbox.remover import Remover
from snavio.outbox.shard_leases import ShardLeases
from snavio.outbox.sweeper import Sweeper
from snavio.outbox.watching import Watching
from snavio.outbox.webhook import Webhooks
from snavio.runtime.leadership import Leadership
from snavio.telemetry.alert_log import AlertLog
from snavio.telemetry.alert_store import AlertStore
from snavio.telemetry.queue_reader import QueueReader
from snavio.telemetry.queue_watch import QueueWatch
from snavio.wire.names import Names

if TYPE_CHECKING:
    from snavio.outbox.config import OutboxConfig
    from snavio.outbox.ports import Rows, Stream, Topics
    from snavio.runtime.worker import Worker

_REPORT_SECONDS = 2.0


async def wire(config: OutboxConfig, worker: Worker) -> None:
    """Carry the outbox to tenants' topics, and alerts to their channels."""
    aws = await worker.enter(open_aws(region=config.region, endpoint_url=config.endpoint))
    names = Names(prefix=config.prefix, region=config.region, account=config.account)
    for service in ("sns", "dynamodb", "dynamodbstreams"):
        await aws.client(
            service
        )  # a client opened late would be closed by whichever task happened to need it first
    rows = DynamoRows(aws.client, aws.tables, names.outbox)
    wire_carrying(
        aws,
        config,
        worker,
        stream=DynamoStream(aws.client, names.outbox),
        rows=rows,
        topics=SnsTopics(aws.client, names),
        notebook=_wire_alerts(config, worker, aws, names),
    )
    watching = Watching(
        QueueWatch(
            QueueReader(aws.client, names), aws.tables, names.alerts, every_seconds=config.watch_seconds
        ),
        rows,
        _lead(config, worker, aws, names, "telemetry-watch"),
        now=worker.now,
        retention_seconds=config.retention_seconds,
        telemetry=worker.telemetry,
    )
    worker.every(config.watch_seconds, watching.look, name="watch", tolerate=(Transient, NotFound))


def wire_carrying(
    aws: Aws,
    config: OutboxConfig,
    worker: Worker,
    *,
    stream: Stream,
    rows: Rows,
    topics: Topics,
    notebook: Notebook,
) -> None:
    """Carry rows from the stream to the topics, and sweep up what the stream missed."""
    names = Names(prefix=config.prefix, region=config.region, account=config.account)
    worker.background("note-alerts", notebook.run)
    worker.on_flush("note-alerts", notebook.write)
    lanes = _wire_publishing(config, worker, topics, rows)
    carrier = Carrier(lanes, notebook, rows, now=worker.now, log=worker.log)
    worker.background("annotations", carrier.run)
    leases = ShardLeases(
        aws.tables, names.leases, me=worker.worker_id, lease_seconds=config.lease_seconds, now=worker.now
    )
    worker.intake(
        StreamIntake(
            stream=stream,
            leases=leases,
            carrier=carrier,
            lanes=lanes,
            rows=rows,
            me=worker.worker_id,
            log=worker.log,
            settings=config.intake,
            telemetry=worker.telemetry,
            now=worker.now,
            roll=worker.roll,
        )
    )
    sweeper = Sweeper(
        stream=stream,
        leases=leases,
        rows=rows,
        carrier=carrier,
        lanes=lanes,
        # Kept between sweeps: what one worker has in hand another should not take as well.
        leadership=_lead(config, worker, aws, names, "outbox-sweeper", seconds=3 * config.sweep_seconds),
        now=worker.now,
        settings=config.sweep,
    )
    worker.every(config.sweep_seconds, sweeper.sweep, name="sweep", tolerate=(Transient, NotFound))


def _wire_publishing(config: OutboxConfig, worker: Worker, topics: Topics, rows: Rows) -> Lanes:
    failures = Failures(
        rows,
        worker_id=worker.worker_id,
        now=worker.now,
        log=worker.log,
        telemetry=worker.telemetry,
        every_seconds=config.report_seconds,
        retention_seconds=config.retention_seconds,
    )
    lanes = Lanes(
        topics,
        Remover(rows, log=worker.log, telemetry=worker.telemetry).remove,
        failures,
        log=worker.log,
        settings=config.lanes,
        telemetry=worker.telemetry,
        now=worker.now,
        roll=worker.roll,
    )
    worker.background("lanes", lanes.run)
    worker.every(_REPORT_SECONDS, failures.report, name="report-failures")
    worker.on_flush("report-failures", failures.report)
    return lanes


def _wire_alerts(config: OutboxConfig, worker: Worker, aws: Aws, names: Names) -> Notebook:
    settings = config.alerts
    store = AlertStore(aws.tables, aws.vault, names)
    choices = AlertChoices(store, now=worker.now, log=worker.log)
    log_book = AlertLog(aws.tables, names.alerts)
    notebook = Notebook(log_book, choices, now=worker.now, log=worker.log, bursts=settings.bursts)
    sender = AlertSender(
        log_book,
        choices,
        Mails(aws.client, config.email_from),
        Webhooks(
            store.secret, now=worker.now, allowed=config.allowed_networks, seconds=config.webhook_seconds
        ),
        _lead(config, worker, aws, names, "alerts"),
        now=worker.now,
        log=worker.log,
        telemetry=worker.telemetry,
        settings=settings,
        roll=worker.roll,
    )
    worker.background("send-alerts", sender.run)
    return notebook


def _lead(
    config: OutboxConfig, worker: Worker, aws: Aws, names: Names, work: str, seconds: float = 2.0
) -> Leadership:
    return Leadership(
        aws.tables,
        names.leases,
        work,
        me=worker.worker_id,
        seconds=max(config.lease_seconds, seconds),
        now=worker.now,
    )
