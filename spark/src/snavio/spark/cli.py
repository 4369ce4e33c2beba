"""`audit` and `report`: the commands of this package, on a laptop (`snavio spark …`) and on EMR Serverless alike."""

from __future__ import annotations

import os
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from snavio.aws.boto.session import open_aws
from snavio.spark.audit import Audited, Lateness, StoreFeed, every
from snavio.spark.audit import audit as run_audit
from snavio.spark.dominance import Thresholds
from snavio.spark.folders import open_folder
from snavio.spark.lake import Lake
from snavio.spark.report import report as run_report
from snavio.spark.reports import Prices
from snavio.spark.session import open_session
from snavio.spark.sink import RegistrySink
from snavio.spark.store import Store
from snavio.spark.table import DAY_SECONDS
from snavio.wire.names import Names

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from snavio.aws.ports import Tables

_LAKE = click.option(
    "--lake", required=True, envvar="SNAVIO_SPARK_LAKE", help="Folder or s3:// URI of the lake."
)
_MASTER = click.option(
    "--master", envvar="SNAVIO_SPARK_MASTER", help="Spark master; local[*] unless spark-submit chose one."
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
@_JSON
@click.option(
    "--prefix", default="snavio", envvar="SNAVIO_PREFIX", show_default=True, help="Prefix of the tables."
)
@click.option(
    "--every", "period", type=float, help="Go on, running every so many seconds. Without it, run once."
)
@click.option(
    "--late-windows", default=10, show_default=True, help="Minutes before the watermark looked at again."
)
@click.option(
    "--target-share", default=0.80, show_default=True, help="X: too large a share of one contended target."
)
@click.option(
    "--spread-share", default=0.60, show_default=True, help="Y: too large a share of each of several."
)
@click.option("--spread-targets", default=3, show_default=True, help="How many targets are several.")
def audit(
    lake: str,
    master: str | None,
    as_json: bool,  # noqa: FBT001
    prefix: str,
    period: float | None,
    late_windows: int,
    target_share: float,
    spread_share: float,
    spread_targets: int,
) -> None:
    r"""Roll up the fairness feed, find who dominates, ban them and tell those concerned.

    Doing it twice, or again after it was killed, changes nothing.

    \b
    Examples:
      snavio spark audit --lake lake                            once
      snavio spark audit --lake s3://acme-lake/lake --every 60  every minute, on one warm session
      snavio spark audit --lake lake --json                     one line of JSON a run
    """
    names = Names(prefix=prefix)
    limits = Thresholds(target_share=target_share, spread_share=spread_share, spread_targets=spread_targets)
    session = open_session("snavio-audit", master=_master(master))
    feed, tables, sink = StoreFeed(session, Store(names.stats)), Lake(open_folder(lake)), registry_sink(names)
    tell = _silent if as_json else _progress
    for now in every(period) if period else [time.time()]:
        done = run_audit(
            session,
            feed,
            tables,
            sink,
            now=now,
            limits=limits,
            lateness=Lateness(windows=late_windows),
            tell=tell,
        )
        click.echo(msgspec.json.encode(done) if as_json else _said(done))
    session.stop()


@spark.command()
@_LAKE
@_MASTER
@_JSON
@click.option(
    "--days", default=2, show_default=True, help="How many days back to bring up to date, today included."
)
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="The last day, UTC; today unless given.")
@click.option(
    "--price", "prices", multiple=True, metavar="NAME=USD", help="fast, slow, rejected or fixed_a_day."
)
def report(
    lake: str,
    master: str | None,
    as_json: bool,  # noqa: FBT001
    days: int,
    until: datetime | None,
    prices: tuple[str, ...],
) -> None:
    r"""Make hourly and daily rollups, usage, latency, failure and cost reports, and a page a day.

    Only what changed since the last time is made again, so late data corrects what it touches.

    \b
    Examples:
      snavio spark report --lake lake                                today and yesterday
      snavio spark report --lake lake --until 2026-11-17 --days 7    a week
      snavio spark report --lake lake --price fast=4.20 --price fixed_a_day=25
    """
    now = time.time()
    last = until.replace(tzinfo=UTC).timestamp() if until else now
    end = (int(last) // DAY_SECONDS + 1) * DAY_SECONDS
    session = open_session("snavio-report", master=_master(master))
    done = run_report(
        session,
        Lake(open_folder(lake)),
        end - days * DAY_SECONDS,
        end,
        now=now,
        prices=_prices(prices),
        tell=_silent if as_json else _progress,
    )
    pages = [f"{lake.rstrip('/')}/{path}" for path in done.pages]
    click.echo(
        msgspec.json.encode(msgspec.structs.replace(done, pages=pages))
        if as_json
        else "\n".join([f"{done.hours} hours and {len(done.days)} days brought up to date.", *pages])
    )
    session.stop()


def main(argv: Sequence[str]) -> None:
    """What `spark-submit` runs: `audit …` or `report …`."""
    spark.main(args=list(argv), prog_name="snavio spark", standalone_mode=False)


def registry_sink(
    names: Names, *, region: str | None = None, endpoint_url: str | None = None
) -> RegistrySink:
    """The sink on the platform's own tables, with the standard AWS credentials."""

    @asynccontextmanager
    async def tables() -> AsyncGenerator[Tables]:
        async with open_aws(region=region, endpoint_url=endpoint_url) as aws:
            yield aws.tables

    return RegistrySink(tables, names)


def _master(given: str | None) -> str | None:
    """The master to ask for: none where `spark-submit` has chosen one already."""
    return given or (None if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]")


def _prices(given: Sequence[str]) -> Prices:
    try:
        named = {name: float(usd) for name, _, usd in (price.partition("=") for price in given)}
        return msgspec.convert(named, Prices)
    except (ValueError, msgspec.ValidationError) as error:
        raise click.BadParameter(f"A price is NAME=USD: {error}.") from error


def _said(done: Audited) -> str:
    minutes = f"{done.changed} of {(done.end - done.start) // 60} minutes changed"
    aside = f", {done.malformed} malformed items set aside" if done.malformed else ""
    banned = f"; banned {', '.join(done.banned)}" if done.banned else ""
    return f"{minutes}: {done.rows} rows of {done.items} items{aside}{banned}."


def _progress(text: str) -> None:
    click.echo(f"… {text}", err=True)


def _silent(_: str) -> None:
    """Say nothing: somebody's program reads the output."""
