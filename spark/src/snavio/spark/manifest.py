"""Which files of a table's day count: the content of its manifest, as a value. No Spark, no files, no clock.

Commits are kept in the order in which they count, and a period is what the last commit that has it says. A run whose
periods are all said by others is retired: its files stay a while for readers that chose them before.
"""

from __future__ import annotations

import msgspec


class Commit(msgspec.Struct, frozen=True):
    """One run's files of one day, and the periods they hold with their fingerprints."""

    run: str
    """Used once, ever."""
    files: list[str]
    periods: dict[int, str]


class Manifest(msgspec.Struct, frozen=True):
    """The commits of a day, and the runs that are no longer among them."""

    commits: list[Commit] = []
    retired: dict[str, float] = {}
    """When each run was retired, until its files are removed."""
    format: int = 1

    def live(self) -> dict[int, Commit]:
        """Each period's commit in force."""
        return {period: commit for commit in self.commits for period in commit.periods}

    def knows(self, run: str) -> bool:
        """Whether a run was committed, be it in force or retired."""
        return run in self.retired or any(commit.run == run for commit in self.commits)

    def with_commit(self, commit: Commit, *, now: float, over: Manifest | None = None) -> Manifest:
        """The manifest after a commit. One that was made already changes nothing, so it may be tried again.

        `over` is for rows that were read from the table itself, to be written again as they are: the manifest they were
        read by. What others committed since then goes on counting.
        """
        if self.knows(commit.run):
            return self
        place = len(self.commits)
        if over is not None:
            read = {held.run for held in over.commits}
            place = next((i for i, held in enumerate(self.commits) if held.run not in read), place)
        commits = [*self.commits[:place], commit, *self.commits[place:]]
        in_force = {held.run for held in Manifest(commits).live().values()}
        retired = {held.run: now for held in commits if held.run not in in_force}
        return Manifest([held for held in commits if held.run in in_force], self.retired | retired)

    def retired_before(self, moment: float) -> set[str]:
        """The runs retired before then."""
        return {run for run, at in self.retired.items() if at < moment}

    def without(self, runs: set[str]) -> Manifest:
        """The manifest once the files of these retired runs are removed."""
        kept = {run: at for run, at in self.retired.items() if run not in runs}
        return msgspec.structs.replace(self, retired=kept)


def decode(body: bytes | None) -> Manifest:
    """The manifest in a file; a day without one has no commits."""
    return Manifest() if body is None else msgspec.json.decode(body, type=Manifest)
