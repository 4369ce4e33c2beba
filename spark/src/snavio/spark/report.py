"""The reports job: hours and days from minutes, then each changed day's reports and its page.

What to do follows from fingerprints: a period is computed again exactly when what it is made of has changed, so late
data corrects every report it touches and a run with nothing new writes nothing. A day's page is made again also when
the verdict on it is another: who abused, which workers fell silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.page import Abuse, Failure, Hour, Report, Served, Silence, Use, page
from snavio.spark.progress import Tell, silent
from snavio.spark.reports import Prices, failures, overview, services, silences, usage
from snavio.spark.rollup import coarsen
from snavio.spark.session import size_shuffles
from snavio.spark.table import DAY_SECONDS, HOUR_SECONDS, LakeTable, combined
from snavio.spark.watermark import read_state
from snavio.wire.stats import WINDOW_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from snavio.spark.lake import Lake

T = TypeVar("T", bound=msgspec.Struct)
_TOP = 12
_MOST_SILENCES = 48
_AROUND_SECONDS = HOUR_SECONDS
"""How far beyond a day the feed is read, to tell who fell silent within it."""


class Lost(msgspec.Struct, frozen=True):
    """What of a day the feed shows to be lost."""

    silences: list[Silence]
    """The first of it."""
    more: int
    """How many silences beyond those."""


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
    tell: Tell = silent,
) -> Reported:
    """Bring the hours, days, reports and pages of [start, end) up to date; both must be midnights, UTC."""
    prices = prices or Prices()
    hours = outdated(lake.minutes, lake.hours, HOUR_SECONDS, start, end)
    if hours:
        tell(f"rolling up {len(hours)} hours")
        rows = _sized(spark, lake.minutes.read(spark, min(hours), max(hours) + HOUR_SECONDS))
        lake.hours.replace(_only(coarsen(rows, HOUR_SECONDS), hours), hours, now=now)
    days = outdated(lake.hours, lake.days, DAY_SECONDS, start, end)
    if days:
        rows = _sized(spark, lake.hours.read(spark, min(days), max(days) + DAY_SECONDS))
        lake.days.replace(_only(coarsen(rows, DAY_SECONDS), days), days, now=now)
    state = read_state(lake.folder)
    until = min(int(now), state.audited_until) if state else int(now)
    known = lake.usage.fingerprints(start, end)
    pages: list[str] = []
    for day, held in sorted(lake.days.fingerprints(start, end).items()):
        lost = silent_workers(spark, lake, day, until)
        mark = _mark(lake, day, held, lost, prices)
        if known.get(day) != mark:
            tell(f"reporting {_date(day)}")
            pages.append(_report_day(spark, lake, day, mark, lost, prices, now=now))
    lake.hours.compact(spark, start, end, now=now, most_files=24)
    lake.sweep(start, end, now=now)
    return Reported(hours=len(hours), days=[_date(day) for day in days], pages=pages)


def outdated(fine: LakeTable, coarse: LakeTable, seconds: int, start: int, end: int) -> dict[int, str]:
    """The coarse periods that no longer are the sum of their fine ones, with what they are to be made of."""
    parts: dict[int, list[tuple[int, str]]] = {}
    for period, mark in fine.fingerprints(start, end).items():
        parts.setdefault(period // seconds * seconds, []).append((period, mark))
    known = coarse.fingerprints(start, end)
    marks = {period: combined(held) for period, held in parts.items()}
    return {period: mark for period, mark in marks.items() if known.get(period) != mark}


def silent_workers(spark: SparkSession, lake: Lake, day: int, until: int) -> Lost:
    """What of a day the feed shows to be lost, given that it was read up to `until`.

    Whether a worker fell silent at the end of a day shows on the next, and a gap may begin on the one before: the feed is
    read beyond both ends, and what touches the day is told.
    """
    end = day + DAY_SECONDS
    found = silences(lake.feed.read(spark, day - _AROUND_SECONDS, end + _AROUND_SECONDS), until)
    over = F.when(F.col("kind") == "partial", 1).otherwise(F.col("windows") + 1) * WINDOW_SECONDS
    touching = found.where((F.col("window") < end) & (F.col("window") + over > day))
    first = _structs(touching.orderBy("window", "worker", "kind").limit(_MOST_SILENCES), Silence)
    return Lost(first, touching.count() - len(first) if len(first) == _MOST_SILENCES else 0)


def _mark(lake: Lake, day: int, held: str, lost: Lost, prices: Prices) -> str:
    """What a day's reports and page are made of, in a word: its sums, the verdicts on it, and the prices."""
    end = day + DAY_SECONDS
    parts = (
        held,
        combined(lake.abuse.fingerprints(day, end).items()),
        combined(lake.faults.fingerprints(day, end).items()),
        str([lost.more, *map(msgspec.structs.astuple, lost.silences)]),
        str(msgspec.structs.astuple(prices)),
    )
    return combined(enumerate(parts))


def _report_day(
    spark: SparkSession,
    lake: Lake,
    day: int,
    mark: str,
    lost: Lost,
    prices: Prices,
    *,
    now: float,
) -> str:
    end = day + DAY_SECONDS
    hours = _sized(spark, lake.hours.read(spark, day, end).cache())
    days = lake.days.read(spark, day, end).cache()
    marks = {day: mark}
    lake.failures.replace(failures(days), marks, now=now)
    lake.services.replace(services(hours), marks, now=now)
    staged = lake.usage.stage(usage(days, prices), marks)
    path = f"reports/{_date(day)}.html"
    lake.folder.write(path, page(_gather(spark, lake, day, hours, days, lost, prices, now=now)).encode())
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
    lost: Lost,
    prices: Prices,
    *,
    now: float,
) -> Report:
    end = day + DAY_SECONDS
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
        silences=lost.silences,
        more_silences=lost.more,
        items=lake.feed.read(spark, day, end).count(),
        malformed=lake.faults.read(spark, day, end).count(),
    )


def _sized(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The frame, with the shuffles of what is made of it sized for it."""
    size_shuffles(spark, frame.count())
    return frame


def _structs(frame: DataFrame, kind: type[T]) -> list[T]:
    """The rows of a frame known to be small."""
    rows: list[Any] = frame.collect()
    return [msgspec.convert(row.asDict(), kind) for row in rows]


def _only(frame: DataFrame, periods: Mapping[int, str]) -> DataFrame:
    return frame.where(F.col("window").isin(list(periods)))


def _date(day: int) -> str:
    return datetime.fromtimestamp(day, UTC).date().isoformat()
