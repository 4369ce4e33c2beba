"""The columns of every frame that leaves a module: the feed as it is read, the lake as it is written.

Times are seconds since the epoch, in UTC, at the start of their window.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

_KEY = [
    StructField("source", StringType()),
    StructField("target", StringType()),
    StructField("command", StringType()),
]
_PARTITION = [StructField("date", StringType()), StructField("hour", StringType())]

ITEMS = StructType(
    [
        StructField("window", LongType()),
        StructField("shard", IntegerType()),
        StructField("worker", StringType()),
        StructField("service", StringType()),
        StructField("part", IntegerType()),
        StructField("parts", IntegerType()),
        StructField("sequence", LongType()),
        StructField("last", BooleanType()),
        StructField("row_count", LongType()),
        StructField("digest", LongType()),
    ]
)
"""One row for each item of the aggregation store, without its counts."""

COUNTS = StructType(
    [
        StructField("window", LongType()),
        StructField("service", StringType()),
        *_KEY,
        StructField("outcome", StringType()),
        StructField("bucket", IntegerType()),
        StructField("count", LongType()),
        StructField("item", StringType()),
        StructField("fault", StringType()),
        StructField("head", StringType()),
        StructField("raw", BinaryType()),
    ]
)
"""One row for each count. A malformed item is one row with `item`, `fault`, `head` and `raw`, which are null in all others."""

ROLLUP = StructType(
    [
        StructField("window", LongType()),
        *_KEY,
        StructField("service", StringType()),
        StructField("outcome", StringType()),
        StructField("bucket", IntegerType()),
        StructField("count", LongType()),
        *_PARTITION,
    ]
)
"""Counts summed over workers, by minute."""

COARSE = StructType([field for field in ROLLUP.fields if field.name != "hour"])
"""Counts summed over minutes, by hour or day; `window` is where that begins."""

FAULTS = StructType(
    [
        StructField("window", LongType()),
        StructField("item", StringType()),
        StructField("fault", StringType()),
        StructField("head", StringType()),
        StructField("raw", BinaryType()),
        *_PARTITION,
    ]
)
"""Malformed items, set aside: `head` is what an item says of itself, as JSON, and `raw` its rows as they came."""

FEED = StructType([*ITEMS.fields, *_PARTITION])
"""The items the rollups were made from: shows which workers reported, and which fell silent."""

VIOLATIONS = StructType(
    [
        StructField("window", LongType()),
        StructField("source", StringType()),
        StructField("target", StringType()),
        StructField("dispatched", LongType()),
        StructField("share", DoubleType()),
        StructField("competing_share", DoubleType()),
        StructField("competitors", LongType()),
        StructField("kind", StringType()),
    ]
)
"""A source that took too much of a contended target in one minute: `target` alone, or `spread` over several."""

ABUSE = StructType(
    [
        StructField("window", LongType()),
        StructField("source", StringType()),
        StructField("targets", ArrayType(StringType())),
        StructField("violations", LongType()),
        StructField("minutes", LongType()),
        StructField("until", LongType()),
        *_PARTITION,
    ]
)
"""A source found to abuse in one ban window; `window` is where that begins."""

_VOLUMES = [
    StructField("fast", LongType()),
    StructField("slow", LongType()),
    StructField("rejected", LongType()),
]
_LATENCY = [
    StructField("p50", DoubleType()),
    StructField("p95", DoubleType()),
    StructField("p99", DoubleType()),
]
_DATE = StructField("date", StringType())

USAGE = StructType(
    [
        StructField("window", LongType()),
        StructField("tenant", StringType()),
        StructField("commands", LongType()),
        *_VOLUMES,
        *_LATENCY,
        StructField("cost_usd", DoubleType()),
        _DATE,
    ]
)
"""A tenant's day."""

SERVICES = StructType(
    [
        StructField("window", LongType()),
        StructField("target", StringType()),
        StructField("command", StringType()),
        *_VOLUMES,
        *_LATENCY,
        _DATE,
    ]
)
"""An hour of a (target, command)."""

FAILURES = StructType(
    [
        StructField("window", LongType()),
        StructField("tenant", StringType()),
        StructField("reason", StringType()),
        StructField("count", LongType()),
        _DATE,
    ]
)
"""A tenant's day of rejections for one reason."""
