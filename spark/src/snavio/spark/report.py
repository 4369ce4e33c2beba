"""The reports job: hours and days from minutes, then each changed day's reports and its page.

What to do follows from fingerprints: a period is computed again exactly when what it is made of has changed, so late
data corrects every report it touches and a run with nothing new writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.page import Abuse, Failure, Hour, Report, Served, Silence, Use, page
from snavio.spark.reports import Prices, failures, overview, services, silences, usage
from snavio.spark.rollup import coarsen
from snavio.spark.table import DAY_SECONDS, HOUR_SECONDS, LakeTable, combined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from snavio.spark.lake import Lake

Tell: TypeAlias = Callable[[str], None]
T = TypeVar("T", bound=msgspec.Struct)
_TOP = 12


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What one run brought up to date."""

    hours: int
    days: list[str]
    pages: list[str]


def report(
    spark: SparkSession,
    lake: Lake,
    start: int,
    end: int,
    *,
    now: float,
    prices: Prices | None = None,
    tell: Tell = lambda _: None,
) -> Reported:
    """Bring the hours, days, reports and pages of [start, end) up to date; both must be midnights, UTC."""
    prices = prices or Prices()
    hours = outdated(lake.minutes, lake.hours, HOUR_SECONDS, start, end)
    if hours:
        tell(f"rolling up {len(hours)} hours")
        rows = lake.minutes.read(spark, min(hours), max(hours) + HOUR_SECONDS)
        lake.hours.replace(_only(coarsen(rows, HOUR_SECONDS), hours), hours, now=now)
    days = outdated(lake.hours, lake.days, DAY_SECONDS, start, end)
    if days:
        rows = lake.hours.read(spark, min(days), max(days) + DAY_SECONDS)
        lake.days.replace(_only(coarsen(rows, DAY_SECONDS), days), days, now=now)
    # The prices are part of what a report is made of.
    priced = {
        day: combined([(day, mark), (0, str(msgspec.structs.astuple(prices)))])
        for day, mark in lake.days.fingerprints(start, end).items()
    }
    known = lake.usage.fingerprints(start, end)
    due = sorted(day for day, mark in priced.items() if known.get(day) != mark)
    pages: list[str] = []
    for day in due:
        tell(f"reporting {_date(day)}")
        pages.append(_report_day(spark, lake, day, priced[day], prices, now=now))
    lake.hours.compact(spark, start, end, now=now, most_commits=6)
    return Reported(hours=len(hours), days=[_date(day) for day in days], pages=pages)


def outdated(fine: LakeTable, coarse: LakeTable, seconds: int, start: int, end: int) -> dict[int, str]:
    """The coarse periods that no longer are the sum of their fine ones, with what they are to be made of."""
    parts: dict[int, list[tuple[int, str]]] = {}
    for period, mark in fine.fingerprints(start, end).items():
        parts.setdefault(period // seconds * seconds, []).append((period, mark))
    known = coarse.fingerprints(start, end)
    marks = {period: combined(held) for period, held in parts.items()}
    return {period: mark for period, mark in marks.items() if known.get(period) != mark}


def _report_day(spark: SparkSession, lake: Lake, day: int, mark: str, prices: Prices, *, now: float) -> str:
    end = day + DAY_SECONDS
    hours = lake.hours.read(spark, day, end).cache()
    days = lake.days.read(spark, day, end).cache()
    marks = {day: mark}
    lake.failures.replace(failures(days), marks, now=now)
    lake.services.replace(services(hours), marks, now=now)
    staged = lake.usage.stage(usage(days, prices), marks)
    path = f"reports/{_date(day)}.html"
    lake.folder.write(path, page(_gather(spark, lake, day, hours, days, prices, now=now)).encode())
    # Last, since the fingerprint of this table is what says that the day is reported.
    lake.usage.commit(staged, now=now)
    hours.unpersist()
    days.unpersist()
    return path


def _gather(
    spark: SparkSession,
    lake: Lake,
    day: int,
    hours: DataFrame,
    days: DataFrame,
    prices: Prices,
    *,
    now: float,
) -> Report:
    end = day + DAY_SECONDS
    feed = lake.feed.read(spark, day, end)
    busiest = services(days).withColumn("handled", F.col("fast") + F.col("slow") + F.col("rejected"))
    return Report(
        day=_date(day),
        made_at=now,
        prices=prices,
        hours=_structs(overview(hours).orderBy("window"), Hour),
        usage=_structs(usage(days, prices).orderBy(F.desc("commands"), "tenant"), Use),
        services=_structs(busiest.orderBy(F.desc("handled"), "target", "command").limit(_TOP), Served),
        failures=_structs(
            failures(days).groupBy("reason").agg(F.sum("count").alias("count")).orderBy(F.desc("count")),
            Failure,
        ),
        abuse=_structs(lake.abuse.read(spark, day, end).orderBy("window", "source"), Abuse),
        silences=_structs(
            silences(feed, min(end, int(now))).orderBy("window", "worker").limit(_TOP * 4), Silence
        ),
        items=feed.count(),
        malformed=lake.faults.read(spark, day, end).count(),
    )


def _structs(frame: DataFrame, kind: type[T]) -> list[T]:
    """The rows of a frame known to be small."""
    rows: list[Any] = frame.collect()
    return [msgspec.convert(row.asDict(), kind) for row in rows]


def _only(frame: DataFrame, periods: Mapping[int, str]) -> DataFrame:
    return frame.where(F.col("window").isin(list(periods)))


def _date(day: int) -> str:
    return datetime.fromtimestamp(day, UTC).date().isoformat()
