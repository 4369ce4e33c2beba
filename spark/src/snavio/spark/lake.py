"""The tables of the lake, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snavio.spark.schemas import ABUSE, COARSE, FAILURES, FAULTS, FEED, ROLLUP, SERVICES, USAGE
from snavio.spark.table import LakeTable

if TYPE_CHECKING:
    from snavio.spark.folders import Folder


class Lake:
    """Everything the jobs keep. The audit writes minutes, feed, faults and abuse; the reports write the rest."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.minutes = LakeTable(folder, "minutes", ROLLUP)
        self.feed = LakeTable(folder, "feed", FEED)
        self.faults = LakeTable(folder, "faults", FAULTS)
        self.abuse = LakeTable(folder, "abuse", ABUSE)
        self.hours = LakeTable(folder, "hours", COARSE)
        self.days = LakeTable(folder, "days", COARSE)
        self.usage = LakeTable(folder, "usage", USAGE)
        self.services = LakeTable(folder, "services", SERVICES)
        self.failures = LakeTable(folder, "failures", FAILURES)

    def sweep(self, start: int, end: int, *, now: float) -> int:
        """Remove what the days of [start, end) no longer need, of every table; returns how many files."""
        tables = [table for table in vars(self).values() if isinstance(table, LakeTable)]
        return sum(table.sweep(start, end, now=now) for table in tables)
