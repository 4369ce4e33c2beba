"""From the feed to rollups. Every measure is a count, so every step is one sum and late data is a sum done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.schemas import COARSE, FAULTS, FEED, ROLLUP
from snavio.spark.table import partition_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

_WHAT = ["source", "target", "command", "service", "outcome", "bucket"]


def rollup(counts: DataFrame, faulty: Observation | None = None) -> DataFrame:
    """Counts of single workers to one a minute: `COUNTS` to `ROLLUP`. Malformed items are left out.

    `faulty` is told in how many `windows` there are any: beside the sums, since looking at every row would cost.
    """
    summed = counts.groupBy("window", *_WHAT).agg(F.sum("count").cast("long").alias("count"))
    if faulty is not None:
        # A malformed item has no source, so those of a window are one group.
        summed = summed.observe(faulty, F.count_if(F.col("source").isNull()).alias("windows"))
    return partition_columns(summed.where(F.col("source").isNotNull())).select(*ROLLUP.fieldNames())


def coarsen(rows: DataFrame, period_seconds: int) -> DataFrame:
    """A finer rollup to one an hour or a day: to `COARSE`."""
    period = (F.col("window") - F.col("window") % F.lit(period_seconds)).alias("window")
    summed = rows.groupBy(period, *_WHAT).agg(F.sum("count").cast("long").alias("count"))
    return partition_columns(summed).select(*COARSE.fieldNames())


def faults(counts: DataFrame) -> DataFrame:
    """The malformed items among the counts: `COUNTS` to `FAULTS`."""
    return partition_columns(counts.where(F.col("fault").isNotNull())).select(*FAULTS.fieldNames())


def feed(items: DataFrame) -> DataFrame:
    """The items with their partition: `ITEMS` to `FEED`."""
    return partition_columns(items).select(*FEED.fieldNames())


def fingerprints(items: DataFrame) -> DataFrame:
    """What each window's rollup is to be computed from, in a word, with its size: (window, fingerprint, items, rows).

    It does not depend on order or on how often an item was written, and changes when an item comes or changes.
    """
    item = F.xxhash64("worker", "part", "parts", "sequence", "row_count", "digest", "service")
    return items.groupBy("window").agg(
        F.concat_ws(
            "-", F.count("*"), F.hex(F.bit_xor(item)), F.hex(F.bit_xor(F.hash("worker", "part", "digest")))
        ).alias("fingerprint"),
        F.count("*").alias("items"),
        # A size to plan by: where it cannot be told, nothing is planned, and nothing fails.
        F.coalesce(F.try_sum("row_count"), F.lit(0)).alias("rows"),
    )
