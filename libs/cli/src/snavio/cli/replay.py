"""`snavio replay`."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import click
import msgspec
from aiobotocore.session import AioSession
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from snavio.aws.boto.session import Aws, open_aws
from snavio.aws.errors import Permanent
from snavio.cli.output import as_json, write_json
from snavio.provisioning.caller import names_here
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.replay.emitter import BusEmitter
from snavio.replay.origins import ArchiveOrigin, Origin, QueueOrigin
from snavio.replay.records import ARCHIVE, Records, ReplayRecord
from snavio.replay.recovered import Filters
from snavio.replay.replay_keys import ensure_replay_key, replay_key
from snavio.replay.replayer import Replayer, Step
from snavio.wire.names import Names

_QUEUES = ("ingress", "fast", "slow")
_DAY = 24 * 3600.0


class _Choices(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str
    origin: str | None
    reason: str | None
    filters: Filters
    rate: float | None
    dry_run: bool
    resume: str | None
    operator: str | None
    quiet: bool


class _Moment(click.ParamType[float]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value} is not a time such as 2026-11-18T06:30:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value} has no offset, such as Z", param, ctx)
        return moment.timestamp()


@click.command(short_help="Send commands again from the archive or a dead-letter queue.")
@click.option(
    "--from",
    "origin",
    metavar="WHERE",
    help="archive; the dead-letter queue of ingress, fast or slow; or the ARN of a queue.",
)
@click.option("--reason", help="Why; it travels with every command and stays in the audit.")
@click.option("--since", type=_Moment(), help="Commands dated then or later; needed for the archive.")
@click.option("--until", type=_Moment(), help="Commands dated earlier; now for the archive.")
@click.option("--source", "sources", multiple=True, help="Only this source; may be repeated.")
@click.option("--target", "targets", multiple=True, help="Only this target; may be repeated.")
@click.option("--command", "commands", multiple=True, help="Only this command; may be repeated.")
@click.option("--id", "ids", multiple=True, help="Only the command with this id; may be repeated.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="At most so many a second.")
@click.option("--dry-run", is_flag=True, help="Count what would be sent, and send nothing.")
@click.option("--resume", metavar="REPLAY_ID", help="Go on with a replay that was interrupted.")
@click.option("--operator", help="Who is doing this, for the audit; the AWS identity otherwise.")
@click.option(
    "--prefix", envvar="SNAVIO_PREFIX", default="snavio", show_default=True, help="First part of every name."
)
@as_json
def replay(*, prefix: str, json: bool, **options: Any) -> None:
    """Send commands again, with a new timestamp and the platform's signature.

    Each passes every check like live traffic, and carries that it is a replay, which one and why. A message leaves a
    dead-letter queue only when its command is on the bus again. Acts with the rights of the replayer role, which the
    caller must be allowed to assume.

    \b
    Examples:
      snavio replay --from slow --reason "target was down" --dry-run
      snavio replay --from slow --target discord-bot --reason "target was down" --rate 50
      snavio replay --from archive --since 2026-11-18T06:00:00Z --source acme/billing --reason "lost by target"
      snavio replay --resume replay-1f0c…
    """  # noqa: D301 - \b tells click to keep the lines that follow
    names = Filters.__struct_fields__
    filters = Filters(**{name: options.pop(name) for name in names})
    choices = _Choices(prefix=prefix, filters=filters, quiet=json, **options)
    _check(choices)
    record = asyncio.run(_run(choices))
    if json:
        write_json(record)
    else:
        _show(record)


def _check(choices: _Choices) -> None:
    if choices.resume is not None:
        if choices.origin or choices.reason or choices.filters != Filters() or choices.dry_run:
            raise click.UsageError("--resume goes on as the replay began: leave the other options out.")
        return
    if choices.origin is None or not choices.reason:
        raise click.UsageError("--from and --reason are needed.")
    if choices.origin == ARCHIVE and choices.filters.since is None:
        raise click.UsageError("--since is needed with --from archive.")
    if choices.origin not in (ARCHIVE, *_QUEUES) and not choices.origin.startswith("arn:"):
        raise click.UsageError("--from is archive, ingress, fast, slow or the ARN of a queue.")


async def _run(choices: _Choices) -> ReplayRecord:
    session = AioSession()
    names = await names_here(session, choices.prefix)
    async with AsyncExitStack() as stack:
        operator = await stack.enter_async_context(open_aws(session=session, region=names.region))
        sts: Any = await operator.client("sts")
        who = choices.operator or str((await sts.get_caller_identity())["Arn"])
        await _make_key(operator, names)
        aws = await stack.enter_async_context(
            open_aws(session=await _assumed(sts, names), region=names.region)
        )
        records = Records(aws.tables, names, clock=time.time)
        record = await _record(choices, records, names, who)
        origin = _origin(aws, names, record, resume=choices.resume is not None)
        store = RegistryStore(aws.tables, names, clock=time.time)
        key = await replay_key(store, Sealer(aws.vault))
        with _progress(shown=not choices.quiet) as progress:
            task = progress.add_task("replaying", total=None)

            def step(now: Step) -> None:
                counts = now.record.counts
                progress.update(
                    task,
                    completed=counts.seen,
                    total=max(now.depth, counts.seen) if now.depth else None,
                    description=f"{counts.emitted} sent, {counts.failed} failed",
                )

            replayer = Replayer(
                origin,
                BusEmitter(aws.client, names.bus),
                records,
                key,
                clock=time.time,
                rate=choices.rate,
                on_step=step,
            )
            return await replayer.run(record)


async def _make_key(operator: Aws, names: Names) -> None:
    """Make the replay key where it is missing and the operator may; the monitor makes it otherwise."""
    store = RegistryStore(operator.tables, names, clock=time.time)
    try:
        await ensure_replay_key(store, Sealer(operator.vault), names, clock=time.time, actor="snavio:replay")
    except Permanent:
        return


async def _assumed(sts: Any, names: Names) -> AioSession:
    try:
        answer = await sts.assume_role(
            RoleArn=names.role_arn(names.role("replayer")), RoleSessionName="snavio-replay"
        )
    except sts.exceptions.ClientError as error:
        raise Permanent(f"The role {names.role('replayer')} cannot be assumed: {error}") from error
    keys = answer["Credentials"]
    session: Any = AioSession()
    session.set_credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    return session


async def _record(choices: _Choices, records: Records, names: Names, who: str) -> ReplayRecord:
    if choices.resume is not None:
        record = await records.find(choices.resume)
        record.operator = who
        record.finished_at = None
        return record
    now = time.time()
    origin = choices.origin or ARCHIVE
    filters = choices.filters
    if origin in _QUEUES:
        origin = names.queue_arn(names.dlq(getattr(names, origin)))
    elif origin == ARCHIVE and filters.until is None:
        filters = msgspec.structs.replace(filters, until=now)
    return ReplayRecord(
        replay_id=f"replay-{uuid.uuid4()}",
        operator=who,
        origin=origin,
        reason=choices.reason or "",
        filters=filters,
        started_at=now,
        dry_run=choices.dry_run,
    )


def _origin(aws: Aws, names: Names, record: ReplayRecord, *, resume: bool) -> Origin:
    if record.origin != ARCHIVE:
        return QueueOrigin(aws.queues, aws.queues.url_of(record.origin), aws.client)
    filters = record.filters
    until = filters.until or record.started_at
    return ArchiveOrigin(
        aws.queues,
        names,
        aws.client,
        name=record.replay_id,
        # The archive knows when events arrived, filters when they were dated: shield's window lies between.
        since=(filters.since or until - _DAY) - 3600,
        until=min(until + 3600, time.time()),
        resume=resume,
    )


def _progress(*, shown: bool) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not shown,
        transient=True,
    )


def _show(record: ReplayRecord) -> None:
    console = Console()
    table = Table(box=None, show_header=False)
    for name, value in msgspec.structs.asdict(record.counts).items():
        table.add_row(name, str(value))
    console.print(table)
    done = "would be sent again" if record.dry_run else "sent again"
    count = record.counts.matched if record.dry_run else record.counts.emitted
    console.print(f"\n{count} commands {done} by {record.replay_id}.")
    if record.counts.failed:
        console.print(f"{record.counts.failed} failed and stay where they were; run it again to retry them.")
