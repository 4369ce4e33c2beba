"""The fairness audit: what the feed has that the lake has not, then who abused, then what follows from it.

A run reads the windows that closed since the last one and, again, those late data may still reach. Windows whose items
are as they were are read and left at that: a query for each shard of each, which the store bills by the whole size of the
items, their counts included. Each step makes the same of the same data, and the watermark is moved last, so a run killed
anywhere is simply done again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import StructType

from snavio.spark.bans import AbuseBan, BanSink, Verdict, events_of, judge
from snavio.spark.dominance import Thresholds, abuse, violations
from snavio.spark.plan import Lateness, plan
from snavio.spark.progress import Tell, silent
from snavio.spark.rollup import faults, feed, fingerprints, rollup
from snavio.spark.schemas import ABUSE
from snavio.spark.session import size_shuffles
from snavio.spark.source import read_counts, read_items
from snavio.spark.table import DAY_SECONDS, HOUR_SECONDS, combined, frame_of, partition_columns
from snavio.spark.watermark import State, read_state, write_state
from snavio.wire.stats import WINDOW_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from snavio.spark.lake import Lake
    from snavio.spark.store import Store


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What one run found and did."""

    start: int
    end: int
    changed: int
    items: int
    rows: int
    malformed: int
    abusers: list[str]
    banned: list[str]
    lifted: list[str]
    """Whose ban was ended, since what came late shows no abuse."""
    events: int
    """How many were told who had not been before."""
    compacted: int
    behind: int
    """Windows still to be read by the next run."""
    expired: int
    """Windows never read and now lost, since the store keeps none for longer than two days."""


class Feed(Protocol):
    """Where items and counts of windows come from."""

    def items(self, windows: list[int]) -> DataFrame:
        """The items of these windows, as `ITEMS`."""
        ...

    def counts(self, windows: list[int]) -> DataFrame:
        """The counts of these windows, as `COUNTS`."""
        ...


class StoreFeed:
    """The feed in the aggregation store."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store

    def items(self, windows: list[int]) -> DataFrame:
        """The items of these windows, as `ITEMS`."""
        return read_items(self._spark, self._store, windows)

    def counts(self, windows: list[int]) -> DataFrame:
        """The counts of these windows, as `COUNTS`."""
        return read_counts(self._spark, self._store, windows)


def audit(
    spark: SparkSession,
    feed_of: Feed,
    lake: Lake,
    sink: BanSink,
    *,
    now: float,
    limits: Thresholds | None = None,
    lateness: Lateness | None = None,
    since: float | None = None,
    tell: Tell = silent,
) -> Audited:
    """One run; `since` is where the first one begins."""
    limits = limits or Thresholds()
    state = read_state(lake.folder)
    planned = plan(now, state, lateness or Lateness(), since=since)
    start, end = planned.start, planned.end
    windows = list(range(start, end, WINDOW_SECONDS))
    tell(f"looking at {len(windows)} windows")
    items = feed_of.items(windows).persist()
    try:
        seen = {row["window"]: row for row in _collect(fingerprints(items))} if windows else {}
        known = lake.minutes.fingerprints(start, end)
        changed = {
            window: row["fingerprint"]
            for window, row in seen.items()
            if known.get(window) != row["fingerprint"]
        }
        rows = sum(seen[window]["rows"] for window in changed)
        malformed = 0
        if changed:
            tell(f"rolling up {rows} rows of {len(changed)} windows")
            size_shuffles(spark, rows)
            malformed = store_windows(spark, items, feed_of.counts(sorted(changed)), lake, changed, now=now)
    finally:
        items.unpersist()
    slots = stale_slots(lake, limits, start, end)
    bans = find_abuse(spark, lake, limits, slots)
    verdict = judge(bans, recorded(spark, lake, limits, slots), slots, now)
    told = carry_out(verdict, sink, now=now, tell=tell)
    # After the sink, since the fingerprints of this table are what says that a ban window was acted on.
    lake.abuse.replace(_abuse_frame(spark, bans), slots, now=now)
    compacted = compact(spark, lake, start, now=now)
    if state is None or state.audited_until // HOUR_SECONDS < end // HOUR_SECONDS:
        lake.sweep(end - 2 * DAY_SECONDS, end, now=now)
    write_state(lake.folder, State(max(end, state.audited_until if state else 0)))
    return Audited(
        start=start,
        end=end,
        changed=len(changed),
        items=sum(seen[window]["items"] for window in changed),
        rows=rows,
        malformed=malformed,
        abusers=sorted({ban.source for ban in bans}),
        banned=sorted({ban.source for ban in verdict.acting}),
        lifted=sorted({ban.source for ban in verdict.lifting}),
        events=told,
        compacted=compacted,
        behind=planned.behind,
        expired=planned.expired,
    )


def store_windows(
    spark: SparkSession,
    items: DataFrame,
    counts: DataFrame,
    lake: Lake,
    changed: dict[int, str],
    *,
    now: float,
) -> int:
    """Bring these windows of the lake up to date; returns how many items were malformed and set aside."""
    # A row for each item, and a malformed one now and then: neither is worth a file for each shard it was read from.
    lake.feed.replace(feed(items.where(F.col("window").isin(list(changed)))).coalesce(1), changed, now=now)
    faulty, malformed = Observation(), 0
    staged = lake.minutes.stage(rollup(counts, faulty), changed)
    start, end = min(changed), max(changed) + WINDOW_SECONDS
    if faulty.get["windows"] or lake.faults.fingerprints(start, end):
        lake.faults.replace(faults(counts).repartition(1), changed, now=now)
        malformed = lake.faults.read(spark, start, end).where(F.col("window").isin(list(changed))).count()
    # Last, since the fingerprints of this table are what says that a window is done.
    lake.minutes.commit(staged, now=now)
    return malformed


def stale_slots(lake: Lake, limits: Thresholds, start: int, end: int) -> dict[int, str]:
    """The ban windows that reach into [start, end) and have changed since they were last acted on."""
    length = limits.ban_window_seconds
    start, end = start // length * length, -(-end // length) * length
    held = lake.minutes.fingerprints(start, end)
    marks = {
        slot: combined((window, mark) for window, mark in held.items() if slot <= window < slot + length)
        for slot in {window // length * length for window in held}
    }
    acted_on = lake.abuse.fingerprints(start, end)
    return {slot: mark for slot, mark in marks.items() if acted_on.get(slot) != mark}


def find_abuse(spark: SparkSession, lake: Lake, limits: Thresholds, slots: Iterable[int]) -> list[AbuseBan]:
    """The abuse in these ban windows."""
    wanted = sorted(slots)
    if not wanted:
        return []
    minutes = lake.minutes.read(spark, wanted[0], wanted[-1] + limits.ban_window_seconds)
    found = abuse(violations(minutes, limits), limits).where(F.col("window").isin(wanted))
    return _bans(found)


def recorded(spark: SparkSession, lake: Lake, limits: Thresholds, slots: Iterable[int]) -> list[AbuseBan]:
    """The abuse that earlier runs acted on, in these ban windows and the ones whose bans reach into them."""
    wanted = sorted(slots)
    if not wanted:
        return []
    reach = (limits.ban_windows - 1) * limits.ban_window_seconds
    return _bans(lake.abuse.read(spark, wanted[0] - reach, wanted[-1] + 1))


def carry_out(verdict: Verdict, sink: BanSink, *, now: float, tell: Tell) -> int:
    """Lift, ban and tell; returns how many were told. Lifting first, since a later ban would hide an earlier one.

    A ban placed by a run that was then killed is not in the lake, so late data does not lift it: it ends by itself.
    """
    if verdict.lifting:
        tell(f"lifting the ban of {_sources(verdict.lifting)}")
        sink.lift(verdict.lifting, now=now)
    bans = [*verdict.acting, *verdict.restoring]
    if not bans:
        return 0
    tell(f"banning {_sources(bans)}")
    owners = sink.owners({target for ban in verdict.acting for target in ban.targets})
    return sink.apply(bans, events_of(verdict.acting, owners, now=now), now=now)


def _sources(bans: Iterable[AbuseBan]) -> str:
    return ", ".join(sorted({ban.source for ban in bans}))


def _bans(found: DataFrame) -> list[AbuseBan]:
    return sorted(
        AbuseBan(
            row["source"],
            row["window"],
            row["until"],
            tuple(row["targets"]),
            row["violations"],
            row["minutes"],
        )
        for row in _collect(found)
    )


def compact(spark: SparkSession, lake: Lake, before: int, *, now: float, hours: int = 3) -> int:
    """Write hours that late data no longer reaches as one file each; returns how many."""
    end = before // HOUR_SECONDS * HOUR_SECONDS
    tables = (lake.minutes, lake.feed, lake.faults, lake.abuse)
    return sum(len(table.compact(spark, end - hours * HOUR_SECONDS, end, now=now)) for table in tables)


def _abuse_frame(spark: SparkSession, bans: Iterable[AbuseBan]) -> DataFrame:
    rows = [
        (ban.window, ban.source, list(ban.targets), ban.violations, ban.minutes, ban.until) for ban in bans
    ]
    return partition_columns(frame_of(spark, rows, StructType(ABUSE.fields[:6])))


def _collect(frame: DataFrame) -> list[Any]:
    """The rows of a frame known to be small."""
    return frame.collect()
