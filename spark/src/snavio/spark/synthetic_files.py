"""The synthetic feed as Parquet with the columns of the data source: for what has nothing to do with the store."""
# pyarrow ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.arrow import batch_of_columns, batch_of_rows, kinds_of
from snavio.spark.schemas import COUNTS, ITEMS
from snavio.spark.synthetic import Spec, worker_rows
from snavio.wire.stats import WINDOW_SECONDS, shard_of, window_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MEASURED = ("source", "target", "command", "outcome", "bucket", "count")


class FileFeed:
    """A feed in files, in the place of the store."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def items(self, windows: list[int]) -> DataFrame:
        """The items of these windows, as `ITEMS`."""
        return self._of(ITEMS, "items", windows)

    def counts(self, windows: list[int]) -> DataFrame:
        """The counts of these windows, as `COUNTS`."""
        return self._of(COUNTS, "counts", windows)

    def _of(self, schema: StructType, name: str, windows: list[int]) -> DataFrame:
        rows = self._spark.read.schema(schema).parquet(str(self._folder / name))
        return rows.where(F.col("window").isin(windows))


def write_feed(spec: Spec, folder: Path, *, files: int = 1) -> int:
    """Write the feed, each item once, for `FileFeed` to read; returns how many counts there are.

    Several files are written by several processes.
    """
    for name in ("counts", "items"):
        (folder / name).mkdir(parents=True)
    files = min(files, spec.workers)
    if files == 1:
        return _write_part(spec, range(spec.workers), folder, 0)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        parts = [
            pool.submit(_write_part, spec, range(part, spec.workers, files), folder, part)
            for part in range(files)
        ]
        return sum(part.result() for part in parts)


def _write_part(spec: Spec, numbers: range, folder: Path, part: int) -> int:
    """Write what some of the workers counted."""
    kinds = kinds_of(COUNTS)
    items: list[dict[str, object]] = []
    total = 0
    with pq.ParquetWriter(folder / "counts" / f"{part}.parquet", pa.schema(list(kinds.items()))) as file:
        for number in numbers:
            for sequence in range(spec.windows):
                window = window_of(spec.start) + sequence * WINDOW_SECONDS
                rows = worker_rows(spec, number, window)
                columns = {
                    name: pa.array([getattr(row, name) for row in rows], kinds[name]) for name in _MEASURED
                }
                where = {"window": window, "service": spec.service(number)}
                file.write_batch(batch_of_columns(kinds, len(rows), where | columns))
                items.append(_item(spec, number, sequence, window, len(rows)))
                total += len(rows)
    batch = batch_of_rows(kinds_of(ITEMS), items)
    pq.write_table(pa.Table.from_batches([batch]), folder / "items" / f"{part}.parquet")
    return total


def _item(spec: Spec, number: int, sequence: int, window: int, rows: int) -> dict[str, object]:
    worker = spec.worker(number)
    return {
        "window": window,
        "shard": shard_of(worker),
        "worker": worker,
        "service": spec.service(number),
        "part": 0,
        "parts": 1,
        "sequence": sequence,
        "last": sequence == spec.windows - 1,
        "row_count": rows,
        # What a worker counted follows from these, so it stands for the digest of it.
        "digest": hash((spec.seed, number, window)),
    }
