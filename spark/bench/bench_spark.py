"""How the audit stands against reading the same rows and one groupBy, and whether its time grows as the rows do.

The feed of each size is generated once, as Parquet with the columns of the data source, so that reading costs either
side as little as it can and the ratio is the rollup's own. All are then measured in turns and the best of each is kept,
since on a shared machine everything else only ever adds. Processor time of Spark's process decides, for the same reason;
elapsed time is told beside it.

`bare` reads and groups and keeps nothing. `rollup` makes the minutes of the lake, on disk. `audit` is all of a run: it
looks for what changed, rolls up, records the feed, finds who dominates and bans.

    python spark/bench/bench_spark.py --millions 2 --millions 20
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.arrow import batch_of_columns, batch_of_rows, kinds_of
from snavio.spark.audit import Lateness, audit
from snavio.spark.folders import open_folder
from snavio.spark.lake import Lake
from snavio.spark.rollup import rollup
from snavio.spark.schemas import COUNTS, ITEMS
from snavio.spark.session import open_session, size_shuffles
from snavio.spark.synthetic import Abuser, Spec, worker_rows
from snavio.wire.stats import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snavio.spark.bans import AbuseBan
    from snavio.wire.events import AbuseDetected

START = 1_763_424_000
WINDOWS = 30
ROWS_A_WORKER = 5_000
ABUSER = "tenant-7/service-1"
_MEASURED = ("source", "target", "command", "outcome", "bucket", "count")


def spec_of(millions: float) -> Spec:
    """Half an hour of about so many million rows: more rows are more workers, the same sources and targets."""
    return Spec(
        start=START,
        windows=WINDOWS,
        workers=max(1, round(millions * 1e6 / (WINDOWS * ROWS_A_WORKER))),
        tenants=50,
        services_a_tenant=4,
        targets=20,
        commands_a_target=5,
        rows_a_window=int(ROWS_A_WORKER * 1.003),
        abusers=(Abuser(ABUSER, ("target-3",), 6.0),),
    )


def write_counts(spec: Spec, numbers: range, path: Path) -> int:
    """Write what some of the workers counted; returns how many rows that is."""
    kinds = kinds_of(COUNTS)
    total = 0
    with pq.ParquetWriter(path, pa.schema(list(kinds.items()))) as file:
        for number in numbers:
            for window in range(START, START + WINDOWS * WINDOW_SECONDS, WINDOW_SECONDS):
                rows = worker_rows(spec, number, window)
                columns = {
                    name: pa.array([getattr(row, name) for row in rows], kinds[name]) for name in _MEASURED
                }
                where = {"window": window, "service": spec.service(number)}
                file.write_batch(batch_of_columns(kinds, len(rows), where | columns))
                total += len(rows)
    return total


def generate(spec: Spec, folder: Path) -> int:
    """Write the feed as Parquet; returns how many counts there are."""
    for name in ("counts", "items"):
        (folder / name).mkdir()
    files = min(16, spec.workers)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        parts = [
            pool.submit(
                write_counts, spec, range(part, spec.workers, files), folder / "counts" / f"{part}.parquet"
            )
            for part in range(files)
        ]
        total = sum(part.result() for part in parts)
    items = [
        {
            "window": START + sequence * WINDOW_SECONDS,
            "worker": spec.worker(number),
            "service": spec.service(number),
            "part": 0,
            "parts": 1,
            "sequence": sequence,
            "last": sequence == WINDOWS - 1,
            "row_count": ROWS_A_WORKER,
            "digest": number,
        }
        for number in range(spec.workers)
        for sequence in range(WINDOWS)
    ]
    pq.write_table(
        pa.Table.from_batches([batch_of_rows(kinds_of(ITEMS), items)]), folder / "items" / "0.parquet"
    )
    return total


class FileFeed:
    """The generated feed in the place of the store."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def items(self, windows: list[int]) -> DataFrame:
        """The items of these windows."""
        return self._of(ITEMS, "items", windows)

    def counts(self, windows: list[int]) -> DataFrame:
        """The counts of these windows."""
        return self._of(COUNTS, "counts", windows)

    def _of(self, schema: Any, name: str, windows: list[int]) -> DataFrame:
        return (
            self._spark.read.schema(schema)
            .parquet(str(self._folder / name))
            .where(F.col("window").isin(windows))
        )


class Found:
    """A sink that remembers who was banned."""

    def __init__(self) -> None:
        self.banned: set[str] = set()

    def owners(self, _: Iterable[str]) -> Mapping[str, str]:
        """Nobody is registered."""
        return {}

    def apply(self, bans: Sequence[AbuseBan], _: Sequence[AbuseDetected], *, now: float) -> None:
        """Remember."""
        self.banned |= {ban.source for ban in bans}


def bare(spark: SparkSession, folder: Path) -> None:
    """The measure: read the same rows, group once, keep nothing."""
    counts = spark.read.schema(COUNTS).parquet(str(folder / "counts"))
    grouped = counts.groupBy("window", "source", "target", "command").agg(F.sum("count"))
    grouped.write.format("noop").mode("overwrite").save()


def rolled(spark: SparkSession, folder: Path) -> None:
    """The rollup, from the feed to minutes on disk."""
    windows = {START + i * WINDOW_SECONDS: str(i) for i in range(WINDOWS)}
    lake = Lake(open_folder(str(_emptied(folder / "lake"))))
    lake.minutes.replace(rollup(FileFeed(spark, folder).counts(list(windows))), windows, now=0)


def whole(spark: SparkSession, folder: Path) -> None:
    """The audit, from the feed to bans, on an empty lake."""
    found = Found()
    end = START + WINDOWS * WINDOW_SECONDS
    done = audit(
        spark,
        FileFeed(spark, folder),
        Lake(open_folder(str(_emptied(folder / "lake")))),
        found,
        now=end + 20,
        lateness=Lateness(windows=WINDOWS),
    )
    if done.changed != WINDOWS or found.banned != {ABUSER}:
        raise click.ClickException(f"The audit banned {sorted(found.banned)} instead of {ABUSER}.")


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


class Cost(msgspec.Struct, frozen=True, order=True):
    """What one measurement took, in seconds."""

    processor: float
    elapsed: float


def measured(work: Callable[[SparkSession, Path], None], spark: SparkSession, folder: Path) -> Cost:
    """What it takes to do the work once."""
    processor, elapsed = _processor_seconds(spark), time.perf_counter()
    work(spark, folder)
    return Cost(_processor_seconds(spark) - processor, time.perf_counter() - elapsed)


def _processor_seconds(spark: SparkSession) -> float:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - the only one who knows the process
    fields = Path(f"/proc/{gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@click.command()
@click.option("--millions", "sizes", type=float, multiple=True, default=(2.0, 20.0), show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--memory", default="4g", show_default=True)
def main(sizes: tuple[float, ...], rounds: int, memory: str) -> None:
    """Measure, and fail when the rollup of the largest feed takes more than 1.5 times the bare reading and grouping."""
    spark = open_session("snavio-bench", master="local[*]", memory=memory)
    ratio = 0.0
    for millions in sorted(sizes):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows = generate(spec_of(millions), folder)
            size_shuffles(spark, rows)
            # One round of each first, not counted: the first to run would pay for compiling what all use.
            rounds_of = [
                [measured(work, spark, folder) for work in (bare, rolled, whole)] for _ in range(rounds + 1)
            ]
            base, *others = (min(costs) for costs in zip(*rounds_of[1:], strict=True))
        click.echo(f"{rows:,} rows")
        for what, cost in zip(("bare", "rollup", "audit"), (base, *others), strict=True):
            click.echo(
                f"  {what:<7}{cost.processor:8.2f} s processor, {cost.elapsed:7.2f} s elapsed, "
                f"{cost.processor / base.processor:5.2f} x bare, {cost.processor / rows * 1e6:6.2f} s a million rows"
            )
        ratio = others[0].processor / base.processor
    spark.stop()
    if ratio > 1.5:
        raise click.ClickException("The rollup takes more than 1.5 times reading the rows and one groupBy.")


if __name__ == "__main__":
    main()
