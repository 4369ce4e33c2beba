"""Usage, latency, failures and cost, from hourly and daily rollups. DataFrame to DataFrame, in SQL functions alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.schemas import FAILURES, SERVICES, USAGE
from snavio.spark.table import partition_columns
from snavio.wire.latency import GAMMA, SMALLEST_MS
from snavio.wire.stats import DISPATCHED, WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

_SETTLED_SECONDS = 3 * WINDOW_SECONDS
"""How long what is missing may still be on its way."""
QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a million commands cost by the path they took, and what the platform costs whoever uses it, in USD.

    The defaults are what `snavio cost` reckons at 100 commands a second of its usual mix, in us-east-1; a test holds them to
    that. The feed does not tell a strict command or a claim check from any other slow one: they are charged alike.
    """

    fast: float = 6.09
    slow: float = 9.37
    rejected: float = 9.34
    """A command refused by slow: everything but its delivery. What shield refuses is not in the feed."""
    fixed_a_day: float = 16.07
    """Workers, polls, keys and this audit: shared out by the commands handled."""


def percentiles(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """p50, p95 and p99 latency in milliseconds of what was dispatched, for each group.

    Histograms merge by adding; the value is that of the bucket where the running count reaches the rank, so within the
    relative error of the buckets, exactly as `snavio.wire.latency.percentile` has it.
    """
    buckets = (
        rows.where(F.col("outcome") == DISPATCHED).groupBy(*by, "bucket").agg(F.sum("count").alias("count"))
    )
    group = Window.partitionBy(*by)
    ranked = buckets.withColumns(
        {
            "seen": F.sum("count").over(group.orderBy("bucket").rowsBetween(Window.unboundedPreceding, 0)),
            "total": F.sum("count").over(group),
        }
    )
    first = {
        name: F.min(
            F.when(F.col("seen") >= F.greatest(F.ceil(F.col("total") * q), F.lit(1)), F.col("bucket"))
        )
        for name, q in QUANTILES.items()
    }
    found = ranked.groupBy(*by).agg(*(column.alias(name) for name, column in first.items()))
    return found.select(*by, *(_value(F.col(name)).alias(name) for name in QUANTILES))


def volumes(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """How many commands each group had: dispatched fast and slow, and rejected."""

    def total(condition: Column) -> Column:
        return F.coalesce(F.sum(F.when(condition, F.col("count"))), F.lit(0))

    dispatched = F.col("outcome") == DISPATCHED
    return rows.groupBy(*by).agg(
        total(dispatched & (F.col("service") == "fast")).alias("fast"),
        total(dispatched & (F.col("service") == "slow")).alias("slow"),
        total(~dispatched).alias("rejected"),
    )


def with_tenant(rows: DataFrame) -> DataFrame:
    """The rows with the tenant of their source."""
    return rows.withColumn("tenant", F.substring_index("source", "/", 1))


def usage(days: DataFrame, prices: Prices) -> DataFrame:
    """What each tenant used, how it was served and what that cost, day by day."""
    by = ["window", "tenant"]
    rows = with_tenant(days)
    used = volumes(rows, by)
    commands = F.col("fast") + F.col("slow") + F.col("rejected")
    part = F.col("commands") / F.sum("commands").over(Window.partitionBy("window"))
    variable = (
        F.col("fast") * prices.fast + F.col("slow") * prices.slow + F.col("rejected") * prices.rejected
    ) / 1e6
    return (
        used.withColumn("commands", commands)
        .withColumn("cost_usd", F.round(variable + part * prices.fixed_a_day, 6))
        .join(percentiles(rows, by), by, "left")
        .transform(partition_columns)
        .select(*USAGE.fieldNames())
    )


def services(hours: DataFrame) -> DataFrame:
    """Hour by hour, how each (target, command) was served."""
    by = ["window", "target", "command"]
    served = volumes(hours, by).join(percentiles(hours, by), by, "left")
    return partition_columns(served).select(*SERVICES.fieldNames())


def overview(hours: DataFrame) -> DataFrame:
    """The whole platform, hour by hour."""
    return (
        volumes(hours, ["window"])
        .join(percentiles(hours, ["window"]), ["window"], "left")
        .select("window", "fast", "slow", "rejected", *QUANTILES)
    )


def failures(days: DataFrame) -> DataFrame:
    """Rejections by reason and tenant, day by day."""
    return (
        with_tenant(days.where(F.col("outcome") != DISPATCHED))
        .groupBy("window", "tenant", F.col("outcome").alias("reason"))
        .agg(F.sum("count").alias("count"))
        .transform(partition_columns)
        .select(*FAILURES.fieldNames())
    )


def silences(feed: DataFrame, until: int) -> DataFrame:
    """What the feed shows to be lost: (worker, service, window, windows, kind). `until` is how far the feed was read.

    `gap`: so many windows after this one never came. `partial`: this one came without some of its parts. `crash`: the
    worker fell silent after this one without saying that it drained. It loses the window it had open; and where the
    store took no writes at the time, what it had closed and kept, ten windows at most, which nothing here can show.
    Neither can what a worker lost before it first wrote: its log and its metrics tell of both.
    """
    each = Window.partitionBy("worker").orderBy("sequence")
    told = (
        # What an item out of order says of itself is not believed; it is among the malformed ones.
        feed.where(F.col("worker").isNotNull() & F.col("service").isNotNull() & F.col("sequence").isNotNull())
        .groupBy("worker", "service", "window", "sequence")
        .agg(
            F.max("last").alias("last"),
            F.count_distinct("part").alias("came"),
            F.max("parts").alias("parts"),
        )
    )
    ordered = told.withColumn("next", F.lead("sequence").over(each))
    settled = F.col("window") < until - _SETTLED_SECONDS
    gap = F.col("next") - F.col("sequence") - 1
    crash = F.col("next").isNull() & ~F.col("last") & settled
    partial = (F.col("came") < F.col("parts")) & settled
    found = F.array(
        F.struct(
            F.when(crash, "crash").when(gap > 0, "gap").alias("kind"),
            F.coalesce(gap, F.lit(1)).alias("windows"),
        ),
        F.struct(F.when(partial, "partial").alias("kind"), F.lit(1).cast("long").alias("windows")),
    )
    return (
        ordered.select("worker", "service", "window", F.explode(found).alias("found"))
        .where(F.col("found.kind").isNotNull())
        .select("worker", "service", "window", "found.windows", "found.kind")
    )


def _value(bucket: Column) -> Column:
    return F.round(F.lit(SMALLEST_MS * 2 / (GAMMA + 1)) * F.pow(F.lit(GAMMA), bucket), 4)
