"""A table of the lake: Parquet in `date=/hour=/run=` folders, and a manifest a day that says which of it counts.

Tables of hours and days have no `hour=`.

A commit replaces whole periods (minutes, hours or days). Its files go to folders of their own; then the day's manifest
is replaced in one step. Until then nobody sees them, so a job killed anywhere leaves the table as it was, and what it
left behind is swept later. A period's fingerprint says what it was computed from: while that stays the same there is
nothing to do.

Several jobs may write at once. A manifest is replaced only by one made from it, so none undoes the commit of another;
where two say different things of one period, the later one counts, and a compaction never is the later one.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from snavio.spark.folders import update
from snavio.spark.manifest import Commit, Manifest, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from snavio.spark.folders import Folder

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
GRACE_SECONDS = HOUR_SECONDS
"""How long files are kept that no longer count, for readers that have begun; from the start of the run that replaced them."""
LEFTOVER_SECONDS = DAY_SECONDS
"""How old files get that never counted, before they are taken for a killed run's: no run may last as long."""


class Staged(msgspec.Struct, frozen=True):
    """Rows written and not yet in force."""

    run: str
    periods: dict[int, str]
    files: list[str]
    """Relative to the lake."""
    over: Manifest | None = None
    """For rows of the table itself, written again: the manifest they were read by."""


class Selection(msgspec.Struct, frozen=True):
    """Where the rows of some periods are."""

    files: list[str]
    """Relative to the lake."""
    stale: dict[str, list[int]]
    """Periods that no longer count, of runs whose files hold others that do."""


class LakeTable:
    """A table at `<folder>/<name>`."""

    def __init__(self, folder: Folder, name: str, schema: StructType) -> None:
        self._folder = folder
        self.name = name
        self.schema = schema
        self._partitions = [column for column in ("date", "hour") if column in schema.fieldNames()]
        self._bin_seconds = HOUR_SECONDS if "hour" in self._partitions else DAY_SECONDS

    def fingerprints(self, start: int, end: int) -> dict[int, str]:
        """What each period in [start, end) was last computed from."""
        return {
            period: commit.periods[period]
            for day in _days(start, end)
            for period, commit in self._manifest(day).live().items()
            if start <= period < end
        }

    def select(self, start: int, end: int) -> Selection:
        """Where the rows of the periods in [start, end) are. The files stay for an hour, whatever is committed meanwhile."""
        return self._select([self._manifest(day) for day in _days(start, end)], start, end)

    def read(self, spark: SparkSession, start: int, end: int) -> DataFrame:
        """The rows of the periods in [start, end)."""
        return self._frame(spark, self.select(start, end), start, end)

    def stage(self, frame: DataFrame, fingerprints: Mapping[int, str]) -> Staged:
        """Write the rows of these periods where nobody sees them yet; `commit` puts them in force."""
        # Never a name used before: neither a killed run nor a second writer can have files in the way.
        run = f"{combined(fingerprints.items())}-{uuid.uuid4().hex[:8]}"
        if fingerprints:
            kept = [name for name in self.schema.fieldNames() if name not in self._partitions]
            (
                frame.select(*kept, *self._places(fingerprints), F.lit(run).alias("run"))
                .write.mode("overwrite")
                .partitionBy(*self._partitions, "run")
                .parquet(f"{self._folder.uri}/{self.name}")
            )
        return Staged(run, dict(fingerprints), self._written(frame.sparkSession, run, fingerprints))

    def commit(self, staged: Staged, *, now: float) -> None:
        """Make the staged periods what their rows say, and no others; a period without rows becomes empty."""
        for day in sorted({_day(period) for period in staged.periods}):
            periods = {period: held for period, held in staged.periods.items() if _day(period) == day}
            places = tuple({self._bin_path(period) for period in periods})
            files = [path for path in staged.files if path.startswith(places)]
            commit = Commit(staged.run, files, periods)
            self._update(day, lambda held, made=commit: held.with_commit(made, now=now, over=staged.over))

    def replace(self, frame: DataFrame, fingerprints: Mapping[int, str], *, now: float) -> None:
        """Stage and commit."""
        self.commit(self.stage(frame, fingerprints), now=now)

    def crowded(self, start: int, end: int, *, most_files: int = 1) -> list[int]:
        """The bins (hours, or days) within [start, end) that are scattered over more files, or commits, than that."""
        size = self._bin_seconds
        found: list[int] = []
        for day in _days(start, end):
            manifest = self._manifest(day)
            commits: dict[int, set[str]] = {}
            for period, commit in manifest.live().items():
                commits.setdefault(period // size * size, set()).add(commit.run)
            found += [
                at
                for at, runs in commits.items()
                if start <= at <= end - size
                and max(len(runs), len(self._select([manifest], at, at + size).files)) > most_files
            ]
        return sorted(found)

    def compact(
        self, spark: SparkSession, start: int, end: int, *, now: float, most_files: int = 1
    ) -> list[int]:
        """Write each crowded bin of [start, end) again as one file; returns those bins. The rows stay the same."""
        bins = self.crowded(start, end, most_files=most_files)
        for at in bins:
            # One manifest for all of it, so that the rows are those of the fingerprints.
            manifest, after = self._manifest(_day(at)), at + self._bin_seconds
            held = {
                period: commit.periods[period]
                for period, commit in manifest.live().items()
                if at <= period < after
            }
            rows = self._frame(spark, self._select([manifest], at, after), at, after).coalesce(1)
            staged = self.stage(rows, held)
            self.commit(msgspec.structs.replace(staged, over=manifest), now=now)
        return bins

    def sweep(self, start: int, end: int, *, now: float) -> int:
        """Remove what the days of [start, end) no longer need, and what killed runs left; returns how many files."""
        removed = 0
        for day in _days(start, end):
            # Listed first: a run committed in between is then known.
            entries = list(self._folder.entries(f"{self.name}/date={day}/"))
            manifest = self._manifest(day)
            over = manifest.retired_before(now - GRACE_SECONDS)
            for entry in entries:
                run = _run(entry.path)
                if run in over or (not manifest.knows(run) and entry.modified < now - LEFTOVER_SECONDS):
                    self._folder.remove(entry.path)
                    removed += 1
            if over:
                self._update(day, lambda held, runs=over: held.without(runs))
        # What Spark had not moved to its place yet, and manifests that were not in theirs.
        for unfinished in (".spark-staging-", "_manifests/."):
            for entry in list(self._folder.entries(f"{self.name}/{unfinished}")):
                if entry.modified < now - LEFTOVER_SECONDS:
                    self._folder.remove(entry.path)
                    removed += 1
        return removed

    def _select(self, manifests: Iterable[Manifest], start: int, end: int) -> Selection:
        files: list[str] = []
        stale: dict[str, list[int]] = {}
        for manifest in manifests:
            live = manifest.live()
            for commit in manifest.commits:
                wanted = [
                    period for period in commit.periods if start <= period < end and live[period] is commit
                ]
                if wanted and commit.files:
                    places = tuple({self._bin_path(period) for period in wanted})
                    files += [path for path in commit.files if path.startswith(places)]
                    replaced = [period for period in commit.periods if live[period] is not commit]
                    # Of a run over midnight both days may have some.
                    stale[commit.run] = [*stale.get(commit.run, ()), *replaced]
        return Selection(files, {run: periods for run, periods in stale.items() if periods})

    def _frame(self, spark: SparkSession, selection: Selection, start: int, end: int) -> DataFrame:
        if not selection.files:
            return frame_of(spark, [], self.schema)
        frame = (
            spark.read.schema(self.schema)
            .option("basePath", f"{self._folder.uri}/{self.name}")
            .parquet(*(f"{self._folder.uri}/{path}" for path in selection.files))
        )
        kept = frame.where((F.col("window") >= start) & (F.col("window") < end))
        if selection.stale:
            # A corrected period stays in the file it was first written with, where it no longer counts.
            path = F.col("_metadata.file_path")
            stale = (
                path.contains(f"/run={run}/") & F.col("window").isin(periods)
                for run, periods in selection.stale.items()
            )
            kept = kept.where(~reduce(lambda one, other: one | other, stale))
        return kept.select(*self.schema.fieldNames())

    def _places(self, periods: Iterable[int]) -> list[Column]:
        """The partition columns of rows of these periods: a few texts known beforehand, not made again for each row."""
        size = self._bin_seconds
        *earlier, last = sorted({period // size * size for period in periods})
        places: list[Column] = []
        for name in self._partitions:
            place = F.lit(_PLACES[name](last))
            for at in reversed(earlier):
                place = F.when(F.col("window") < at + size, _PLACES[name](at)).otherwise(place)
            places.append(place.alias(name))
        return places

    def _bin_path(self, period: int) -> str:
        return f"{self.name}/" + "".join(f"{name}={_PLACES[name](period)}/" for name in self._partitions)

    def _written(self, spark: SparkSession, run: str, periods: Iterable[int]) -> list[str]:
        """The files of a run. Raises `FileNotFoundError` where only Spark sees any: the lake would be empty, and say so."""
        places = [f"{place}run={run}/" for place in sorted({self._bin_path(period) for period in periods})]
        files = [
            entry.path for place in places for entry in self._folder.entries(place) if _is_data(entry.path)
        ]
        if not files:
            # Without any rows there is no file, and for Spark no such place either.
            for place in places:
                if _exists(spark, f"{self._folder.uri}/{place}"):
                    raise FileNotFoundError(
                        f"Spark wrote to {self._folder.uri}/{place}, and nothing is found there."
                    )
        return files

    def _manifest_path(self, day: str) -> str:
        return f"{self.name}/_manifests/{day}.json"

    def _manifest(self, day: str) -> Manifest:
        return decode(self._folder.read(self._manifest_path(day)))

    def _update(self, day: str, change: Callable[[Manifest], Manifest]) -> None:
        update(
            self._folder,
            self._manifest_path(day),
            lambda body: msgspec.json.encode(change(decode(body))),
        )


def frame_of(spark: SparkSession, rows: Sequence[tuple[object, ...]], schema: StructType) -> DataFrame:
    """A frame of a few rows the driver has."""
    return cast("Any", spark).createDataFrame(rows, schema)


def partition_columns(frame: DataFrame) -> DataFrame:
    """The frame with `date` and `hour`, the partition of its `window`."""
    at = F.timestamp_seconds("window")
    return frame.withColumns({"date": F.date_format(at, "yyyy-MM-dd"), "hour": F.date_format(at, "HH")})


def combined(fingerprints: Iterable[tuple[int, str]]) -> str:
    """One fingerprint for what was computed from several periods."""
    text = "\n".join(f"{period} {held}" for period, held in sorted(fingerprints))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _day(period: int) -> str:
    return datetime.fromtimestamp(period, UTC).date().isoformat()


def _hour(period: int) -> str:
    return f"{period % DAY_SECONDS // HOUR_SECONDS:02d}"


_PLACES = {"date": _day, "hour": _hour}


def _days(start: int, end: int) -> Sequence[str]:
    first = start // DAY_SECONDS * DAY_SECONDS
    return [_day(at) for at in range(first, end, DAY_SECONDS)]


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not path.rpartition("/")[2].startswith((".", "_"))


def _exists(spark: SparkSession, uri: str) -> bool:
    try:
        spark.read.format("binaryFile").load(uri)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True


def _run(path: str) -> str:
    return path.partition("/run=")[2].partition("/")[0]
