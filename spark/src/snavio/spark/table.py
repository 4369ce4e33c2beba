"""A table of the lake: Parquet in `date=/hour=/run=` folders, and a manifest a day that says which of it counts.

Tables of hours and days have no `hour=`.

A commit replaces whole periods (minutes, hours or days). Its files go to folders of their own; then the day's manifest
is replaced in one step. Until then nobody sees them, so a job killed anywhere leaves the table as it was, and what it
left behind is swept later. A period's fingerprint says what it was computed from: while that stays the same there is
nothing to do. Should two jobs write at once, one may undo the other's commit; the next run finds it missing and makes
up for it.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import msgspec
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from snavio.spark.folders import Entry, Folder

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
GRACE_SECONDS = 3_600
"""How long files nobody refers to any more are kept, for readers that have begun."""


class Commit(msgspec.Struct, frozen=True):
    """One run's files of one day, and the periods they hold with their fingerprints."""

    run: str
    files: list[str]
    periods: dict[int, str]


class Manifest(msgspec.Struct, frozen=True):
    """The commits of a day, oldest first; a period is what the last commit that has it says."""

    commits: list[Commit] = []
    format: int = 1

    def live(self) -> dict[int, Commit]:
        """Each period's commit in force."""
        return {period: commit for commit in self.commits for period in commit.periods}

    def with_commit(self, commit: Commit) -> Manifest:
        """The manifest after a commit, without those it leaves nothing of."""
        after = Manifest([*self.commits, commit])
        in_force = {id(held) for held in after.live().values()}
        return Manifest([kept for kept in after.commits if id(kept) in in_force])


class Staged(msgspec.Struct, frozen=True):
    """Rows written and not yet in force."""

    run: str
    periods: dict[int, str]


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

    def read(self, spark: SparkSession, start: int, end: int) -> DataFrame:
        """The rows of the periods in [start, end)."""
        files: list[str] = []
        dead: dict[str, list[int]] = {}
        for day in _days(start, end):
            manifest = self._manifest(day)
            live = manifest.live()
            for commit in manifest.commits:
                wanted = [
                    period for period in commit.periods if start <= period < end and live[period] is commit
                ]
                if wanted and commit.files:
                    folders = tuple({self._bin_path(period) for period in wanted})
                    files += [path for path in commit.files if path.startswith(folders)]
                    stale = [period for period in commit.periods if live[period] is not commit]
                    if stale:
                        dead[commit.run] = stale
        if not files:
            return frame_of(spark, [], self.schema)
        root = f"{self._folder.uri}/{self.name}"
        frame = (
            spark.read.schema(self.schema)
            .option("basePath", root)
            .parquet(*(f"{self._folder.uri}/{path}" for path in files))
        )
        kept = frame.where((F.col("window") >= start) & (F.col("window") < end))
        if dead:
            # A corrected period stays in the file it was first written with, where it no longer counts.
            path = F.col("_metadata.file_path")
            stale = (
                path.contains(f"/run={run}/") & F.col("window").isin(periods) for run, periods in dead.items()
            )
            kept = kept.where(~reduce(lambda one, other: one | other, stale))
        return kept.select(*self.schema.fieldNames())

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
        return Staged(run, dict(fingerprints))

    def commit(self, staged: Staged, *, now: float) -> None:
        """Make the staged periods what their rows say, and no others; a period without rows becomes empty."""
        for day in sorted({_day(period) for period in staged.periods}):
            entries = list(self._folder.entries(f"{self.name}/date={day}"))
            files = [
                entry.path
                for entry in entries
                if f"/run={staged.run}/" in entry.path and _is_data(entry.path)
            ]
            periods = {period: held for period, held in staged.periods.items() if _day(period) == day}
            manifest = self._manifest(day).with_commit(Commit(staged.run, files, periods))
            self._folder.write(self._manifest_path(day), msgspec.json.encode(manifest))
            self._sweep(manifest, entries, now - GRACE_SECONDS)

    def replace(self, frame: DataFrame, fingerprints: Mapping[int, str], *, now: float) -> None:
        """Stage and commit."""
        self.commit(self.stage(frame, fingerprints), now=now)

    def crowded(self, start: int, end: int, *, most_commits: int = 1) -> list[int]:
        """The bins (hours, or days) within [start, end) whose rows are scattered over more commits than that."""
        size = self._bin_seconds
        commits: dict[int, set[str]] = {}
        for day in _days(start, end):
            for period, commit in self._manifest(day).live().items():
                commits.setdefault(period // size * size, set()).add(commit.run)
        return sorted(
            at for at, runs in commits.items() if start <= at <= end - size and len(runs) > most_commits
        )

    def compact(
        self, spark: SparkSession, start: int, end: int, *, now: float, most_commits: int = 1
    ) -> list[int]:
        """Write each crowded bin of [start, end) again as one file; returns those bins. The rows stay the same."""
        bins = self.crowded(start, end, most_commits=most_commits)
        for at in bins:
            held = self.fingerprints(at, at + self._bin_seconds)
            rows = self.read(spark, at, at + self._bin_seconds).coalesce(1)
            self.replace(rows, held, now=now)
        return bins

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

    def _manifest_path(self, day: str) -> str:
        return f"{self.name}/_manifests/{day}.json"

    def _manifest(self, day: str) -> Manifest:
        body = self._folder.read(self._manifest_path(day))
        return Manifest() if body is None else msgspec.json.decode(body, type=Manifest)

    def _sweep(self, manifest: Manifest, entries: Iterable[Entry], before: float) -> None:
        referred = {path for commit in manifest.commits for path in commit.files}
        for entry in entries:
            if entry.path not in referred and entry.modified < before:
                self._folder.remove(entry.path)


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
