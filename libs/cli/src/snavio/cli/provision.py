"""`snavio provision`."""

from __future__ import annotations

import asyncio

import click
from aiobotocore.session import AioSession
from rich.console import Console
from rich.table import Table

from snavio.cli.output import as_json, write_json
from snavio.provisioning.apply import Report, apply
from snavio.provisioning.caller import names_here
from snavio.provisioning.describe import Settings, describe

_DAYS = click.IntRange(min=0)


@click.command(short_help="Create the platform's AWS resources, or complete them.")
@click.option(
    "--prefix", envvar="SNAVIO_PREFIX", default="snavio", show_default=True, help="First part of every name."
)
@click.option(
    "--archive-days",
    type=_DAYS,
    default=Settings().archive_days,
    show_default=True,
    help="How long the archive keeps commands; 0 for ever.",
)
@click.option(
    "--claim-days",
    type=click.IntRange(min=1),
    default=Settings().claim_days,
    show_default=True,
    help="How long large payloads are kept.",
)
@click.option(
    "--max-receives",
    type=click.IntRange(1, 1000),
    default=Settings().max_receives,
    show_default=True,
    help="Attempts at a message before it goes to the dead-letter queue.",
)
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@as_json
def provision(
    *, prefix: str, archive_days: int, claim_days: int, max_receives: int, dry_run: bool, json: bool
) -> None:
    r"""Create the platform's AWS resources, complete what is half made, and correct what has drifted.

    Acts on the account and region of the standard AWS variables and files, or on the endpoint in AWS_ENDPOINT_URL.
    Running it again changes nothing.

    \b
    Examples:
      snavio provision --dry-run
      snavio provision --archive-days 30
      AWS_ENDPOINT_URL=http://127.0.0.1:4566 snavio provision --json
    """
    settings = Settings(archive_days=archive_days, claim_days=claim_days, max_receives=max_receives)
    report = asyncio.run(_provision(prefix, settings, dry_run=dry_run))
    if json:
        write_json(report)
    else:
        _show(report)


async def _provision(prefix: str, settings: Settings, *, dry_run: bool) -> Report:
    session = AioSession()
    return await apply(describe(await names_here(session, prefix), settings), session, dry_run=dry_run)


def _show(report: Report) -> None:
    console = Console()
    if not report.changes:
        console.print(f"All {report.resources} resources are as described.")
        return
    table = Table("resource", "name", "change", box=None, header_style="bold")
    for change in report.changes:
        done = f"correct {', '.join(change.aspects)}" if change.action == "correct" else "create"
        table.add_row(change.kind, change.name, done)
    console.print(table)
    tense = "would change" if report.dry_run else "changed"
    console.print(f"\n{len(report.changes)} of {report.resources} resources {tense}.")
