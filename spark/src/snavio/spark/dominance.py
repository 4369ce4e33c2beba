"""Who takes too much of what others want as well, minute by minute and over a ban window.

The measure is all dispatches, warm and cold: a source off the warm path that goes on flooding the cold one still
dominates, and its ban is renewed. Like fairness in a worker, nothing is too much where nobody else wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.schemas import ABUSE, VIOLATIONS
from snavio.spark.table import partition_columns
from snavio.wire.stats import DISPATCHED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """When a share is too much, and when that is abuse."""

    target_share: float = 0.80
    """X: a source above this share of one contended target dominates it."""
    spread_share: float = 0.60
    """Y: a source above this share of each of several contended targets dominates them together."""
    spread_targets: int = 3
    """How many are several."""
    meaningful_share: float = 0.10
    """A target is contended when the others together hold this share of it …"""
    min_competitors: int = 3
    """… or are so many."""
    min_dispatches: int = 60
    """Below this many a minute, a target's shares say nothing."""
    min_minutes: int = 2
    """Minutes of one ban window a source must dominate in: once is a burst."""
    ban_window_seconds: int = 300
    """Ban windows are aligned."""
    ban_windows: int = 3
    """A ban lasts to the end of its window and two more: of what is found in time, 8 to 13 minutes from detection."""


def violations(minutes: DataFrame, limits: Thresholds) -> DataFrame:
    """Each (minute, source, target) with too large a share: a minute rollup to `VIOLATIONS`."""
    of_target = Window.partitionBy("window", "target")
    share = F.col("dispatched") / F.col("total")
    shares = (
        minutes.where(F.col("outcome") == DISPATCHED)
        .groupBy("window", "target", "source")
        .agg(F.sum("count").alias("dispatched"))
        .withColumn("total", F.sum("dispatched").over(of_target))
        .withColumn("competitors", F.count("*").over(of_target) - 1)
        .withColumn("share", share)
        .withColumn("competing_share", 1 - share)
    )
    contended = shares.where(
        (F.col("total") >= limits.min_dispatches)
        & (F.col("competitors") > 0)
        & (
            # In whole numbers: 1 - 0.9 is not quite 0.1.
            (F.col("total") - F.col("dispatched") >= limits.meaningful_share * F.col("total"))
            | (F.col("competitors") >= limits.min_competitors)
        )
        & (F.col("share") > min(limits.target_share, limits.spread_share))
    )
    over_spread = F.sum((F.col("share") > limits.spread_share).cast("int")).over(
        Window.partitionBy("window", "source")
    )
    kind = F.when(F.col("share") > limits.target_share, "target").when(
        (F.col("share") > limits.spread_share) & (F.col("targets") >= limits.spread_targets), "spread"
    )
    return (
        contended.withColumn("targets", over_spread)
        .withColumn("kind", kind)
        .where(F.col("kind").isNotNull())
        .select(*VIOLATIONS.fieldNames())
    )


def abuse(found: DataFrame, limits: Thresholds) -> DataFrame:
    """The sources that dominate again and again within one ban window: `VIOLATIONS` to `ABUSE`."""
    length = F.lit(limits.ban_window_seconds)
    ban_window = (F.col("window") - F.col("window") % length).alias("window")
    flagged = (
        found.groupBy(ban_window, "source")
        .agg(
            F.array_sort(F.collect_set("target")).alias("targets"),
            F.count("*").alias("violations"),
            F.count_distinct(found["window"]).alias("minutes"),
        )
        .where(F.col("minutes") >= limits.min_minutes)
        .withColumn("until", F.col("window") + limits.ban_windows * length)
    )
    return partition_columns(flagged).select(*ABUSE.fieldNames())
