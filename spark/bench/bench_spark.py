"""How the audit stands against reading the same rows and one groupBy, and whether its time grows as the rows do.

The feed of each size is generated once, as Parquet with the columns of the data source: either side reads the same
files, and as cheaply as can be, so that the ratio is the rollup's own.

- `bare` reads the rows, groups them once into the very sums of the lake, and keeps nothing (Spark's `noop` sink).
- `rollup` makes the minutes of the lake of them: partitioned Parquet on disk, and its manifest.
- `audit` is all of a run: it looks for what changed, rolls up, records the feed, finds who dominates, and bans.
- `coarse` is a smaller question, for comparison: one sum for each (window, source, target, command), no histogram.

They take turns, and the median of each is kept. On a machine shared with others the processor time of Spark's process
says more than the clock; both are told, and it is the processor time that is held: the rollup of the largest feed to 1.5
times `bare`, and the time a row of rollup and audit to 1.25 times what it is on the smallest.

The Python data source is measured by itself, reading a feed of its own from the embedded AWS. That is one process and
answers slowly, so the figure says what the source does at least.

    python spark/bench/bench_spark.py --millions 2 --millions 20
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click
import msgspec
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.embedded.launch import embedded_aws
from snavio.spark.audit import audit
from snavio.spark.clients import client_of
from snavio.spark.folders import open_folder
from snavio.spark.lake import Lake
from snavio.spark.plan import Lateness
from snavio.spark.rollup import rollup
from snavio.spark.schemas import COUNTS
from snavio.spark.session import open_session, size_shuffles
from snavio.spark.source import read_counts
from snavio.spark.store import Store, write_items
from snavio.spark.synthetic import Abuser, Spec, arrivals
from snavio.spark.synthetic_files import FileFeed, write_feed
from snavio.wire.stats import SHARDS, WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from snavio.spark.bans import AbuseBan
    from snavio.wire.events import AbuseDetected

START = 1_763_424_000
WINDOWS = 30
ROWS_A_WORKER = 5_000
MOST = 1.5
MOST_GROWTH = 1.25
FILES = 16
ABUSER = "tenant-7/service-1"


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


class Found:
    """A sink that remembers who was banned."""

    def __init__(self) -> None:
        self.banned: set[str] = set()

    def owners(self, _: Iterable[str]) -> Mapping[str, str]:
        """Nobody is registered."""
        return {}

    def apply(self, bans: Sequence[AbuseBan], events: Sequence[AbuseDetected], *, now: float) -> int:
        """Remember."""
        self.banned |= {ban.source for ban in bans}
        return len(events)

    def lift(self, bans: Sequence[AbuseBan], *, now: float) -> None:
        """Forget."""
        self.banned -= {ban.source for ban in bans}


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
    """The rollup, from the feed to minutes on disk, as `store_windows` does it."""
    windows = {START + i * WINDOW_SECONDS: str(i) for i in range(WINDOWS)}
    minutes, faulty = Lake(open_folder(str(_emptied(folder / "lake")))).minutes, Observation()
    staged = minutes.stage(rollup(FileFeed(spark, folder).counts(list(windows)), faulty), windows)
    if faulty.get["windows"]:
        raise click.ClickException("The generated feed has malformed items.")
    minutes.commit(staged, now=0)


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


class SourceRead(msgspec.Struct, frozen=True):
    """What reading through the data source took."""

    rows: int
    queries: int
    seconds: float


def read_source(spark: SparkSession, endpoint: str, rounds: int) -> SourceRead:
    """Read about 100,000 rows that were written as workers write them; the first round is not counted."""
    spec = msgspec.structs.replace(spec_of(1), windows=5, workers=4)
    store = Store(f"stats-{uuid.uuid4().hex[:8]}", "us-east-1", endpoint)
    client_of("dynamodb", store.region, endpoint).create_table(
        TableName=store.table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    )
    items = [arrival.item for arrival in arrivals(spec)]
    write_items(store, items)
    windows = sorted({item.window for item in items})
    seconds: list[float] = []
    for _ in range(1 + rounds):
        began = time.perf_counter()
        read_counts(spark, store, windows).write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - began)
    return SourceRead(sum(item.row_count for item in items), len(windows) * SHARDS, median(seconds[1:]))


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

    def a_row(self, name: str) -> float:
        """Processor time a row."""
        return self.medians[name].processor / self.rows


class Measured(msgspec.Struct, frozen=True):
    """All of a run."""

    sizes: list[Size]
    growth: dict[str, float]
    """Time a row of the largest feed over that of the smallest."""
    source: SourceRead


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
    """Measure, and fail when the rollup takes more than 1.5 times `bare`, or time a row grows by more than 1.25."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        # For the embedded AWS. Workers inherit the environment of the moment the JVM starts.
        os.environ[name] = "test"
    spark = open_session("snavio-bench", master="local[*]", memory=memory)
    sizes_measured: list[Size] = []
    with tempfile.TemporaryDirectory() as name:
        for millions in sorted(sizes):
            folder = (feeds or Path(name)) / f"{millions:g}"
            if not folder.exists():
                write_feed(spec_of(millions), folder, files=FILES)
            rows = spark.read.parquet(str(folder / "counts")).count()
            size_shuffles(spark, rows)
            # The rounds that Java takes to compile what all of them run are the first feed's, and not counted.
            uncounted = 0 if sizes_measured else 3
            sizes_measured.append(measure(spark, folder, rows, rounds, uncounted=uncounted))
            show(sizes_measured[-1])
        with embedded_aws(Path(name) / "aws") as endpoint:
            source = read_source(spark, endpoint, rounds)
    spark.stop()
    click.echo(
        f"source: {source.rows:,} rows by {source.queries} queries to the embedded AWS in {source.seconds:.2f} s, "
        f"{source.rows / source.seconds:,.0f} rows a second"
    )
    first, last = sizes_measured[0], sizes_measured[-1]
    growth = {name: last.a_row(name) / first.a_row(name) for name in WORK}
    if last is not first:
        for name, grown in growth.items():
            click.echo(
                f"{name}: {last.rows / first.rows:.2f} times the rows, {grown:.2f} times the time a row"
            )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(msgspec.json.format(msgspec.json.encode(Measured(sizes_measured, growth, source))))
    faults = broken(last, growth)
    if faults:
        raise click.ClickException(" ".join(faults))


def broken(last: Size, growth: dict[str, float]) -> list[str]:
    """Which promises did not hold."""
    faults: list[str] = []
    if last.ratios["rollup"].processor > MOST:
        faults.append(f"The rollup takes more than {MOST} times reading the rows and one groupBy.")
    faults += [
        f"In {name}, a row of the largest feed takes {growth[name]:.2f} times as long as one of the smallest."
        for name in ("rollup", "audit")
        if growth[name] > MOST_GROWTH
    ]
    return faults


if __name__ == "__main__":
    main()
