"""Spark data sources for the aggregation store: one input partition for each (window, shard), read by Query.

Both take the options `table` and `windows` (a list, comma-separated), and where needed `region` and `endpoint_url`. A
schema given to the reader projects: only those columns are built, and only the attributes they come from are fetched.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from snavio.spark.arrow import Batch, batch_of_columns, batch_of_rows, kinds_of, merged, numbers, words_at
from snavio.spark.items import HEAD, Attributes, counts_of, readable, set_aside
from snavio.spark.schemas import COUNTS, ITEMS
from snavio.spark.store import Store, query_shard
from snavio.wire.stats import SHARDS, MalformedStats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


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
        return store, [int(window) for window in options["windows"].split(",") if window]


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
        self.kinds = kinds_of(schema)

    def partitions(self) -> Sequence[InputPartition]:
        return [Shard(window, shard) for window in self.windows for shard in range(SHARDS)]

    def read(self, partition: InputPartition) -> Iterator[Batch]:
        assert isinstance(partition, Shard)  # noqa: S101 - Spark hands back what `partitions` made
        return self.read_shard(partition.window, partition.shard)

    @abstractmethod
    def read_shard(self, window: int, shard: int) -> Iterator[Batch]: ...


class _ItemReader(_Reader):
    def read_shard(self, window: int, shard: int) -> Iterator[Batch]:
        known: Attributes = {"window": window, "shard": shard}
        attributes = [name for name in self.kinds if name not in known] or ["sk"]
        for page in query_shard(self.store, window, shard, attributes):
            yield batch_of_rows(self.kinds, [readable(item) | known for item in page])


class _CountReader(_Reader):
    def read_shard(self, window: int, shard: int) -> Iterator[Batch]:
        attributes = ["sk", *HEAD, "rows"]
        for page in query_shard(self.store, window, shard, attributes):
            yield from merged(self._item(window, item) for item in page)

    def _item(self, window: int, item: Attributes) -> Batch:
        try:
            return self._counts(window, item)
        except MalformedStats as fault:
            return batch_of_columns(self.kinds, 1, {"window": window, **set_aside(item, fault)})

    def _counts(self, window: int, item: Attributes) -> Batch:
        service, c = counts_of(item)
        values: dict[str, Any] = {"window": window, "service": service}
        indices = {"source": c.source, "target": c.target, "command": c.command, "outcome": c.outcome}
        values |= {name: words_at(c.words, at) for name, at in indices.items() if name in self.kinds}
        figures = {"bucket": c.bucket, "count": c.count}
        values |= {
            name: numbers(held, self.kinds[name]) for name, held in figures.items() if name in self.kinds
        }
        return batch_of_columns(self.kinds, len(c.count), values)


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
