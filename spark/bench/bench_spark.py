"""How the audit stands against reading the same rows and one groupBy, and whether its time grows as the rows do.

The feed of each size is generated once, as Parquet with the columns of the data source: either side reads the same
files, and as cheaply as can be, so that the ratio is the rollup's own.

- `bare` reads the rows, groups them once into the very sums of the lake, and keeps nothing (Spark's `noop` sink).
- `rollup` makes the minutes of the lake of them: partitioned Parquet on disk, and its manifest.
- `audit` is all of a run: it looks for what changed, rolls up, records the feed, finds who dominates, and bans.
- `coarse` is a smaller question, for comparison: one sum for each (window, source, target, command), no histogram.

They take turns, and the median of each is kept. On a machine shared with others the processor time of Spark's process
says more than the clock; both are told.

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
from statistics import median
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
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snavio.spark.bans import AbuseBan
    from snavio.wire.events import AbuseDetected

START = 1_763_424_000
WINDOWS = 30
ROWS_A_WORKER = 5_000
MOST = 1.5
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
    """The measure: read the same rows, group once into the same sums, keep nothing."""
    _group(spark, folder, "window", "source", "target", "command", "service", "outcome", "bucket")


def coarse(spark: SparkSession, folder: Path) -> None:
    """Read the same rows, group once into fewer sums, keep nothing."""
    _group(spark, folder, "window", "source", "target", "command")


def _group(spark: SparkSession, folder: Path, *by: str) -> None:
    counts = spark.read.schema(COUNTS).parquet(str(folder / "counts"))
    counts.groupBy(*by).agg(F.sum("count")).write.format("noop").mode("overwrite").save()


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


class Cost(msgspec.Struct, frozen=True):
    """What something took, in seconds."""

    processor: float
    elapsed: float


class Size(msgspec.Struct, frozen=True):
    """What was measured on one feed."""

    rows: int
    medians: dict[str, Cost]
    ratios: dict[str, Cost]
    """Over `bare`."""
    peak_mb: int
    """The most memory Spark's process had held by then."""


WORK = {"bare": bare, "rollup": rolled, "audit": whole, "coarse": coarse}


def measure(spark: SparkSession, folder: Path, rows: int, rounds: int, *, uncounted: int) -> Size:
    """Do each kind of work so many times, in turns; the first rounds may be left out of account."""
    costs: dict[str, list[Cost]] = {name: [] for name in WORK}
    for counted in [False] * uncounted + [True] * rounds:
        for name, work in WORK.items():
            processor, elapsed = _processor_seconds(spark), time.perf_counter()
            work(spark, folder)
            cost = Cost(_processor_seconds(spark) - processor, time.perf_counter() - elapsed)
            costs[name] += [cost] if counted else []
    medians = {
        name: Cost(median(cost.processor for cost in all_of), median(cost.elapsed for cost in all_of))
        for name, all_of in costs.items()
    }
    base = medians["bare"]
    ratios = {
        name: Cost(cost.processor / base.processor, cost.elapsed / base.elapsed)
        for name, cost in medians.items()
    }
    return Size(rows, medians, ratios, _peak_mb(spark))


def _processor_seconds(spark: SparkSession) -> float:
    fields = (_process(spark) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(spark: SparkSession) -> int:
    status = dict(line.split(":", 1) for line in (_process(spark) / "status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) // 1024


def _process(spark: SparkSession) -> Path:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - the only one who knows the process
    return Path("/proc") / str(gateway.proc.pid)


def show(size: Size) -> None:
    """A line for each kind of work."""
    click.echo(f"{size.rows:,} rows; Spark's process held {size.peak_mb:,} MB at most")
    for name, cost in size.medians.items():
        ratio = size.ratios[name]
        click.echo(
            f"  {name:<7}{cost.processor:8.2f} s processor ({ratio.processor:4.2f} x bare)"
            f"{cost.elapsed:8.2f} s elapsed ({ratio.elapsed:4.2f} x bare)"
            f"{cost.processor / size.rows * 1e6:7.2f} s a million rows"
        )


@click.command()
@click.option("--millions", "sizes", type=float, multiple=True, default=(2.0, 20.0), show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--memory", default="4g", show_default=True, help="Heap of Spark's process.")
@click.option(
    "--feeds", type=click.Path(path_type=Path), help="Keep generated feeds here, and use those found."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench-spark.json"))
def main(sizes: tuple[float, ...], rounds: int, memory: str, feeds: Path | None, out: Path) -> None:
    """Measure, and fail when the rollup of the largest feed takes more than 1.5 times `bare`."""
    spark = open_session("snavio-bench", master="local[*]", memory=memory)
    measured: list[Size] = []
    with tempfile.TemporaryDirectory() as name:
        for millions in sorted(sizes):
            folder = (feeds or Path(name)) / f"{millions:g}"
            if not folder.exists():
                folder.mkdir(parents=True)
                generate(spec_of(millions), folder)
            rows = spark.read.parquet(str(folder / "counts")).count()
            size_shuffles(spark, rows)
            # The rounds that Java takes to compile what all of them run are the first feed's, and not counted.
            measured.append(measure(spark, folder, rows, rounds, uncounted=0 if measured else 3))
            show(measured[-1])
    spark.stop()
    first, last = measured[0], measured[-1]
    for name in ("rollup", "audit"):
        growth = last.medians[name].processor / first.medians[name].processor
        click.echo(f"{name}: {last.rows / first.rows:.2f} times the rows took {growth:.2f} times as long")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(msgspec.json.format(msgspec.json.encode(measured)))
    if last.ratios["rollup"].processor > MOST:
        raise click.ClickException(
            f"The rollup takes more than {MOST} times reading the rows and one groupBy."
        )


if __name__ == "__main__":
    main()
