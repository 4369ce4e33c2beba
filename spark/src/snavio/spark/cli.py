"""`audit` and `report`: the commands of this package, on a laptop (`snavio spark …`) and on EMR Serverless alike."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from snavio.aws.boto.session import open_aws
from snavio.aws.errors import SnavioError
from snavio.spark.audit import Audited, StoreFeed
from snavio.spark.audit import audit as run_audit
from snavio.spark.dominance import Thresholds
from snavio.spark.failures import JobFailedError, is_around, sentence
from snavio.spark.folders import fault_of, open_folder
from snavio.spark.interrupts import opening
from snavio.spark.lake import Lake
from snavio.spark.loop import every, run_at
from snavio.spark.parameters import Number, Price
from snavio.spark.plan import Lateness
from snavio.spark.progress import silent
from snavio.spark.report import report as run_report
from snavio.spark.reports import Prices
from snavio.spark.session import open_session
from snavio.spark.sink import RegistrySink
from snavio.spark.store import Store, query_shard
from snavio.spark.table import DAY_SECONDS
from snavio.spark.watermark import read_state
from snavio.wire.names import Names
from snavio.wire.stats import window_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from pyspark.sql import SparkSession

    from snavio.aws.ports import Tables


INTERRUPTED = 130
"""The exit code of what Ctrl-C ended, as shells have it."""


_SHARE = Number(0, 1)
_COUNT = click.IntRange(1)
_MOST_DAYS = 3_660
_LAKE = click.option(
    "--lake",
    required=True,
    envvar="SNAVIO_SPARK_LAKE",
    help="Folder of the lake; on EMR Serverless, its s3:// URI.",
)
_MASTER = click.option(
    "--master", envvar="SNAVIO_SPARK_MASTER", help="Spark master; local[*] unless spark-submit chose one."
)
_DEBUG = click.option(
    "--debug",
    is_flag=True,
    envvar="SNAVIO_SPARK_DEBUG",
    help="Show where an error came from, and what Spark logs, instead of a sentence.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON line a run instead of text.")


@click.group()
def spark() -> None:
    r"""Audit fairness and report usage, on Spark.

    \b
    Examples:
      snavio spark audit --lake lake --every 60     go on as the platform does
      snavio spark report --lake lake --days 1      hours, days and a page, up to now
    """


@spark.command()
@_LAKE
@_MASTER
@_DEBUG
@_JSON
@click.option(
    "--prefix", default="snavio", envvar="SNAVIO_PREFIX", show_default=True, help="Prefix of the tables."
)
@click.option(
    "--every",
    "period",
    type=Number(0, DAY_SECONDS, min_open=True),
    help="Go on, running every so many seconds. Without it, run once.",
)
@click.option(
    "--late-windows",
    type=_COUNT,
    default=10,
    show_default=True,
    help="Minutes before the watermark looked at again.",
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    metavar="TIME",
    help="Where a first run begins, UTC (2026-11-17T08:00 or 2026-11-17), if the store goes back as far; as many"
    " minutes back as --late-windows unless given.",
)
@click.option(
    "--target-share",
    type=_SHARE,
    default=0.80,
    show_default=True,
    help="X: too large a share of one contended target.",
)
@click.option(
    "--spread-share",
    type=_SHARE,
    default=0.60,
    show_default=True,
    help="Y: too large a share of each of several.",
)
@click.option(
    "--spread-targets", type=_COUNT, default=3, show_default=True, help="How many targets are several."
)
def audit(
    lake: str,
    master: str | None,
    debug: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    prefix: str,
    period: float | None,
    late_windows: int,
    since: datetime | None,
    target_share: float,
    spread_share: float,
    spread_targets: int,
) -> None:
    r"""Roll up the fairness feed, find who dominates, ban them and tell those concerned.

    Doing it twice, or again after it was killed, changes nothing.

    \b
    Examples:
      snavio spark audit --lake lake               once
      snavio spark audit --lake lake --every 60    every minute, on one warm session
      snavio spark audit --lake lake --json        one line of JSON a run
      snavio spark audit --lake lake --since 2026-11-17T08:00    a first run over what the store still holds
    """
    check_lake(lake, master)
    names = Names(prefix=prefix)
    limits = Thresholds(target_share=target_share, spread_share=spread_share, spread_targets=spread_targets)
    store = Store(names.stats)
    tell = silent if as_json else _progress

    def failed(error: Exception) -> None:
        click.echo(f"This run failed and will be made up for: {sentence(error)}", err=True)

    with _plainly(debug=debug):
        # What would fail a thousand tasks, each with its own traceback, fails here first.
        next(query_shard(store, window_of(time.time()), 0, ["sk"]))
        with _session("snavio-audit", master, debug=debug) as session:
            feed, tables, sink = StoreFeed(session, store), Lake(open_folder(lake)), registry_sink(names)

            def run(now: float) -> None:
                done = run_audit(
                    session,
                    feed,
                    tables,
                    sink,
                    now=now,
                    limits=limits,
                    lateness=Lateness(windows=late_windows),
                    since=since.replace(tzinfo=UTC).timestamp() if since else None,
                    tell=tell,
                )
                click.echo(msgspec.json.encode(done) if as_json else _said(done))

            if period is None:
                run(time.time())
            else:
                run_at(every(period), run, failed=failed)


@spark.command()
@_LAKE
@_MASTER
@_DEBUG
@_JSON
@click.option(
    "--days",
    type=click.IntRange(1, _MOST_DAYS),
    default=2,
    show_default=True,
    help="How many days back to bring up to date, today included.",
)
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="The last day, UTC; today unless given.")
@click.option(
    "--price",
    "prices",
    type=Price(),
    multiple=True,
    metavar="NAME=USD",
    help="fast, slow, rejected or fixed_a_day.",
)
def report(
    lake: str,
    master: str | None,
    debug: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    days: int,
    until: datetime | None,
    prices: tuple[tuple[str, float], ...],
) -> None:
    r"""Make hourly and daily rollups, usage, latency, failure and cost reports, and a page a day.

    Only what changed since the last time is made again, so late data corrects what it touches.

    \b
    Examples:
      snavio spark report --lake lake                                today and yesterday
      snavio spark report --lake lake --until 2026-11-17 --days 7    a week
      snavio spark report --lake lake --price fast=4.70 --price fixed_a_day=25
    """
    check_lake(lake, master)
    now = time.time()
    last = until.replace(tzinfo=UTC).timestamp() if until else now
    end = (int(last) // DAY_SECONDS + 1) * DAY_SECONDS
    with _plainly(debug=debug):
        folder = open_folder(lake)
        if read_state(folder) is None:
            raise JobFailedError(f"There is no lake at {lake}, or none that an audit has written to.")
        with _session("snavio-report", master, debug=debug) as session:
            done = run_report(
                session,
                Lake(folder),
                max(0, end - days * DAY_SECONDS),
                end,
                now=now,
                prices=Prices(**dict(prices)),
                tell=silent if as_json else _progress,
            )
    pages = [f"{lake.rstrip('/')}/{path}" for path in done.pages]
    click.echo(
        msgspec.json.encode(msgspec.structs.replace(done, pages=pages))
        if as_json
        else "\n".join([f"{done.hours} hours and {len(done.days)} days brought up to date.", *pages])
    )


def check_lake(lake: str, master: str | None) -> None:
    """Refuse a lake where Spark cannot write to it, which it would only find out at its first commit."""
    fault = fault_of(lake)
    if fault:
        raise click.BadParameter(fault, param_hint="--lake")
    # PySpark by itself has no file system for S3; the Spark whose `spark-submit` started this may.
    alone = master.startswith("local") if master else "PYSPARK_GATEWAY_PORT" not in os.environ
    if alone and lake.startswith(("s3:", "s3a:")):
        raise click.BadParameter(
            "s3:// lakes are for EMR Serverless, where Spark can write to S3; on this machine, name a folder.",
            param_hint="--lake",
        )


def main(argv: Sequence[str]) -> int:
    """What `spark-submit` runs: `audit …` or `report …`. 0 for done, 1 with a sentence for what went wrong, 2 for wrong usage."""
    try:
        spark.main(args=list(argv), prog_name="snavio spark", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except SnavioError as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    return 0


@contextmanager
def _plainly(*, debug: bool) -> Generator[None]:
    """Tell what goes wrong around a job in a sentence, unless asked where it came from."""
    try:
        yield
    except Exception as error:
        if debug or isinstance(error, click.ClickException) or not is_around(error):
            raise
        raise JobFailedError(sentence(error)) from error


@contextmanager
def _session(name: str, master: str | None, *, debug: bool) -> Generator[SparkSession]:
    chosen = master or (None if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]")
    with opening():
        session = open_session(name, master=chosen, quiet=not debug)
    try:
        yield session
    except BaseException:
        # What is told is what went wrong, not that Spark could then not be ended in good order.
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session.stop()
        raise
    session.stop()


def registry_sink(
    names: Names, *, region: str | None = None, endpoint_url: str | None = None
) -> RegistrySink:
    """The sink on the platform's own tables, with the standard AWS credentials."""

    @asynccontextmanager
    async def tables() -> AsyncGenerator[Tables]:
        async with open_aws(region=region, endpoint_url=endpoint_url) as aws:
            yield aws.tables

    return RegistrySink(tables, names)


def _said(done: Audited) -> str:
    minutes = f"{done.changed} of {(done.end - done.start) // 60} minutes changed"
    aside = f", {done.malformed} malformed items set aside" if done.malformed else ""
    banned = f"; banned {', '.join(done.banned)}" if done.banned else ""
    lifted = f"; lifted the ban of {', '.join(done.lifted)}" if done.lifted else ""
    behind = f"; {done.behind} minutes are left for the next run" if done.behind else ""
    expired = f"; {done.expired} minutes were lost before they were read" if done.expired else ""
    return f"{minutes}: {done.rows} rows of {done.items} items{aside}{banned}{lifted}{behind}{expired}."


def _progress(text: str) -> None:
    click.echo(f"… {text}", err=True)
