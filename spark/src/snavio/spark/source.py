"""Spark data sources for the aggregation store: one input partition for each (window, shard), read by Query.

Both take the options `table`, `from` and `until` (windows, the end exclusive) or `windows` (a list, comma-separated),
and where needed `region` and `endpoint_url`. A schema given to the reader projects: only those columns are built, and
only the attributes they come from are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from snavio.wire.stats import SHARDS, WINDOW_SECONDS, MalformedStats, decode_columns

from snavio.spark.schemas import COUNTS, ITEMS
from snavio.spark.store import Attributes, Store, query_shard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_BATCH_ROWS = 32_768


class Shard(InputPartition):
    """One shard of one window: what one task reads."""

    def __init__(self, window: int, shard: int) -> None:
        super().__init__((window, shard))
        self.window = window
        self.shard = shard


class _Source(DataSource):
    full: StructType

    def schema(self) -> StructType:
        return self.full

    def _plan(self) -> tuple[Store, list[int]]:
        options = self.options
        store = Store(options["table"], options.get("region"), options.get("endpoint_url"))
        if "windows" in options:
            return store, [int(window) for window in options["windows"].split(",") if window]
        return store, list(range(int(options["from"]), int(options["until"]), WINDOW_SECONDS))


class StatsItems(_Source):
    """`snavio-stats-items`: a row for each item, without fetching its counts."""

    full = ITEMS

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` calls it."""
        return "snavio-stats-items"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns in this schema."""
        return _ItemReader(*self._plan(), schema)


class StatsCounts(_Source):
    """`snavio-stats-counts`: a row for each count, and one for each malformed item."""

    full = COUNTS

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` calls it."""
        return "snavio-stats-counts"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns in this schema."""
        return _CountReader(*self._plan(), schema)


class _Reader(DataSourceReader):
    def __init__(self, store: Store, windows: Sequence[int], schema: StructType) -> None:
        self.store = store
        self.windows = windows
        self.columns = {field.name: _ARROW[field.dataType.simpleString()] for field in schema.fields}

    def partitions(self) -> Sequence[InputPartition]:
        return [Shard(window, shard) for window in self.windows for shard in range(SHARDS)]

    def _batches(self, pieces: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if pieces:
            yield from pa.Table.from_batches(pieces).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)

    def _batch(self, rows: int, values: Mapping[str, Any]) -> pa.RecordBatch:
        arrays = [
            value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value, kind), rows)
            for kind, value in ((kind, values.get(name)) for name, kind in self.columns.items())
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(self.columns.items())))


class _ItemReader(_Reader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Shard)  # noqa: S101 - Spark hands back what `partitions` made
        known = {"window": partition.window, "shard": partition.shard}
        attributes = [name for name in self.columns if name not in known] or ["sk"]
        for page in query_shard(self.store, partition.window, partition.shard, attributes):
            rows = [known | item for item in page]
            arrays = [
                pa.array([_fitting(row.get(name), kind) for row in rows], kind) for name, kind in self.columns.items()
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(self.columns.items())))


class _CountReader(_Reader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Shard)  # noqa: S101 - Spark hands back what `partitions` made
        attributes = ["sk", "service", "row_count", "rows"]
        for page in query_shard(self.store, partition.window, partition.shard, attributes):
            yield from self._batches([self._item(partition.window, item) for item in page])

    def _item(self, window: int, item: Attributes) -> pa.RecordBatch:
        try:
            return self._counts(window, item)
        except MalformedStats as fault:
            raw = item.get("rows")
            set_aside = {"item": item.get("sk"), "fault": str(fault), "raw": raw if isinstance(raw, bytes) else None}
            return self._batch(1, {"window": window, **set_aside})

    def _counts(self, window: int, item: Attributes) -> pa.RecordBatch:
        service, rows = item.get("service"), item.get("rows")
        if service not in ("fast", "slow"):
            raise MalformedStats(f"The service is neither fast nor slow but {service!r}.")
        if not isinstance(rows, bytes):
            raise MalformedStats("The item has no rows.")
        c = decode_columns(rows)
        if item.get("row_count") != len(c.count):
            raise MalformedStats(f"The item says {item.get('row_count')} rows and holds {len(c.count)}.")
        words = pa.array(c.words, pa.string())
        values: dict[str, Any] = {"window": window, "service": service}
        for name in ("source", "target", "command", "outcome"):
            if name in self.columns:
                values[name] = words.take(pa.array(getattr(c, name), pa.int32()))
        values["bucket"] = pa.array(c.bucket, pa.int32())
        values["count"] = pa.array(c.count, pa.int64())
        return self._batch(len(c.count), values)


def _fitting(value: object, kind: pa.DataType) -> Any:
    """A value of the column's type, or None: one bad attribute must not stop the reading of the others."""
    match value:
        case bool():
            return value if kind == pa.bool_() else None
        case int() if pa.types.is_integer(kind):
            return value if value.bit_length() < kind.bit_width else None
        case str() if kind == pa.string():
            return value
        case _:
            return None


def read_items(spark: SparkSession, store: Store, windows: Sequence[int]) -> DataFrame:
    """The items of these windows."""
    return _read(spark, StatsItems, store, windows)


def read_counts(spark: SparkSession, store: Store, windows: Sequence[int]) -> DataFrame:
    """The counts of these windows, with malformed items among them."""
    return _read(spark, StatsCounts, store, windows)


def _read(spark: SparkSession, source: type[_Source], store: Store, windows: Sequence[int]) -> DataFrame:
    options = {"table": store.table, "windows": ",".join(map(str, windows))}
    if store.region:
        options["region"] = store.region
    if store.endpoint_url:
        options["endpoint_url"] = store.endpoint_url
    return spark.read.format(source.name()).schema(source.full).options(**options).load()
