"""What folders of both kinds do alike, and that writers who share a lake never undo each other. No Spark."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from snavio.spark.clients import client_of
from snavio.spark.folders import BucketFolder, LocalFolder, Version, open_folder, update
from snavio.spark.manifest import Commit, Manifest, decode
from snavio.spark.schemas import ROLLUP
from snavio.spark.table import GRACE_SECONDS, LEFTOVER_SECONDS, LakeTable, Staged

MIDNIGHT = 1_763_424_000  # 2025-11-18T00:00:00Z
HOUR = 3600
MANIFEST = "minutes/_manifests/2025-11-18.json"


@pytest.fixture(params=["local", pytest.param("bucket", marks=pytest.mark.aws)])
def folder(request, tmp_path, monkeypatch):
    """Each kind of folder in turn, empty."""
    if request.param == "local":
        return LocalFolder(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    client = client_of("s3", "us-east-1", request.getfixturevalue("aws_endpoint"))
    bucket = f"lake-{uuid.uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket)
    return BucketFolder("s3", bucket, "/some/lake/", client)


# What every folder does


def test_a_file_is_what_was_written_last_and_an_absent_one_is_none(folder):
    assert folder.read("a/b.json") is None
    assert folder.version("a/b.json") == Version(None)
    for body in (b"\x00long" * 1000, b"short", b""):
        folder.write("a/b.json", body)
        assert folder.read("a/b.json") == folder.version("a/b.json").body == body


def test_a_file_is_made_once_and_replaced_only_by_who_saw_it_as_it_is(folder):
    absent = folder.version("m.json")
    assert folder.replace("m.json", b"1", absent)
    assert not folder.replace("m.json", b"other", absent)
    seen = folder.version("m.json")
    assert folder.replace("m.json", b"2", seen)
    assert not folder.replace("m.json", b"other", seen)
    assert folder.read("m.json") == b"2"
    seen = folder.version("m.json")
    folder.remove("m.json")
    assert not folder.replace("m.json", b"other", seen)
    assert folder.read("m.json") is None


def test_files_are_found_by_how_their_path_starts_at_any_depth(folder):
    for path in ("t/date=1/a/x", "t/date=1/y", "t/date=10/z", "t/.spark-1/deep/w", "t/.spark-2", "u/v"):
        folder.write(path, b"")

    def found(start):
        return {entry.path for entry in folder.entries(start)}

    assert found("t/date=1/") == {"t/date=1/a/x", "t/date=1/y"}
    assert found("t/date=1") == {"t/date=1/a/x", "t/date=1/y", "t/date=10/z"}
    assert found("t/.spark-") == {"t/.spark-1/deep/w", "t/.spark-2"}
    assert found("nothing/at/all") == found("u/v/") == set()
    (entry,) = folder.entries("u/")
    assert entry.modified == pytest.approx(time.time(), abs=60)


def test_removing_takes_one_file_and_removing_nothing_is_no_error(folder):
    for path in ("run=1/a", "run=1/ab", "run=2/a"):
        folder.write(path, b"")
    folder.remove("run=1/a")
    folder.remove("run=1/a")
    folder.remove("never/was")
    assert [entry.path for entry in folder.entries("run=")] == ["run=1/ab", "run=2/a"]
    folder.remove("run=1/ab")
    folder.write("run=1/again", b"")
    assert folder.read("run=1/again") == b""


def one_more(body):
    return str(int(body or b"0") + 1).encode()


def test_no_update_is_lost_among_threads(folder):
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(update, folder, "n/count", one_more) for _ in range(24)]:
            done.result()
    assert folder.read("n/count") == b"24"


COUNTING = """
    import sys
    from pathlib import Path
    from snavio.spark.folders import LocalFolder, update

    sys.stdin.readline()
    for _ in range(100):
        update(LocalFolder(Path(sys.argv[1])), "n/count", lambda body: str(int(body or b"0") + 1).encode())
"""


def test_no_update_is_lost_among_processes(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(COUNTING), str(tmp_path)]
    counting = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for process in counting:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in counting:
        process.communicate()
    assert [process.returncode for process in counting] == [0, 0, 0]
    assert LocalFolder(tmp_path).read("n/count") == b"300"


def test_a_writer_that_always_loses_says_so_at_last(tmp_path, monkeypatch):
    monkeypatch.setattr("snavio.spark.folders._MOST_TRIES", 3)
    monkeypatch.setattr(LocalFolder, "replace", lambda *_: False)
    with pytest.raises(TimeoutError, match=r"m\.json was replaced by others 3 times"):
        update(LocalFolder(tmp_path), "m.json", one_more)


class Answering:
    """An S3 client whose puts fail in this way."""

    def __init__(self, status, code):
        self._response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}

    def put_object(self, **_):
        raise ClientError(self._response, "PutObject")


def test_a_conflict_is_tried_again_and_what_is_wrong_is_not_taken_for_one():
    busy = BucketFolder("s3", "b", "", Answering(409, "ConditionalRequestConflict"))
    assert not busy.replace("m.json", b"", Version(b"", "tag"))
    denied = BucketFolder("s3", "b", "", Answering(403, "AccessDenied"))
    with pytest.raises(ClientError):
        denied.replace("m.json", b"", Version(b"", "tag"))


def test_a_lake_is_named_by_a_path_or_a_uri(tmp_path, monkeypatch):
    assert open_folder(str(tmp_path)).uri == open_folder(tmp_path.as_uri()).uri == tmp_path.as_uri()
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert [open_folder(uri).uri for uri in ("s3://b/lake/", "s3a://b")] == ["s3://b/lake", "s3a://b"]
    with pytest.raises(ValueError, match="not gs://"):
        open_folder("gs://b/lake")


def test_a_path_is_named_to_spark_as_it_is_and_a_file_uri_is_decoded(tmp_path):
    odd = tmp_path / "my lake é 100%20 #1"
    for named in (str(odd), odd.as_uri()):
        folder = open_folder(named)
        folder.write("a/b", b"1")
        assert folder.uri == f"file://{odd}"
    assert (odd / "a/b").read_bytes() == b"1"


@pytest.mark.parametrize(
    "uri",
    ["la[ke", "la]ke", "a/{b", "a}", "a*/b", "la?ke", "la\\ke", "s3://b/a*", "s3://[b", "file:///a/%5Bb%5D"],
)
def test_a_path_that_spark_would_read_as_a_pattern_is_refused_in_a_sentence(uri):
    with pytest.raises(ValueError, match=r"^Spark would take . .*in the path of a lake for a pattern: .*\.$"):
        open_folder(uri)


# What writers make of a table


class Rows:
    """A table whose files hold values by period as JSON: what Spark does with Parquet, without Spark."""

    def __init__(self, folder):
        self.folder = folder
        self.table = LakeTable(folder, "minutes", ROLLUP)

    def stage(self, values, over=None):
        """Write values of periods of one hour, as `LakeTable.stage` would."""
        run = uuid.uuid4().hex
        hour = min(values) % 86_400 // HOUR
        path = f"minutes/date=2025-11-18/hour={hour:02d}/run={run}/part-0.parquet"
        self.folder.write(path, msgspec.json.encode(values))
        return Staged(run, {period: str(value) for period, value in values.items()}, [path], over)

    def replace(self, values, now=0.0):
        self.table.commit(self.stage(values), now=now)

    def begin_compaction(self, start):
        """Read an hour and write it again; the commit is left to the caller."""
        manifest = decode(self.folder.read(MANIFEST))
        picked = self.table._select([manifest], start, start + HOUR)
        return self.stage(self.values_of(picked, start), manifest)

    def values(self, start=MIDNIGHT):
        return self.values_of(self.table.select(start, start + HOUR), start)

    def values_of(self, picked, start):
        found = {}
        for path in picked.files:
            body = self.folder.read(path)
            assert body is not None, f"{path} counts and is gone"
            stale = picked.stale.get(path.split("/run=")[1].split("/")[0], [])
            for period, value in msgspec.json.decode(body, type=dict[int, int]).items():
                if start <= period < start + HOUR and period not in stale:
                    assert period not in found, f"{period} counts twice"
                    found[period] = value
        return found

    def files(self):
        return {entry.path for entry in self.folder.entries("minutes/date=")}


class Interrupted:
    """A folder where somebody else does something right before this writer's first replacement."""

    def __init__(self, folder, meanwhile):
        self._folder, self._meanwhile = folder, [meanwhile]

    def __getattr__(self, name):
        return getattr(self._folder, name)

    def replace(self, *args):
        while self._meanwhile:
            self._meanwhile.pop()()
        return self._folder.replace(*args)


def test_two_commits_at_once_both_count(folder):
    other = Rows(folder)
    mine = Rows(Interrupted(folder, lambda: other.replace({MIDNIGHT + 60: 2, MIDNIGHT + 120: 2})))
    mine.replace({MIDNIGHT: 1, MIDNIGHT + 60: 1})
    assert other.values() == {MIDNIGHT: 1, MIDNIGHT + 60: 1, MIDNIGHT + 120: 2}


def test_a_commit_made_before_a_compaction_and_a_sweep_names_no_file_they_removed(folder):
    other, now = Rows(folder), time.time()
    other.replace({MIDNIGHT: 1}, now)
    other.replace({MIDNIGHT + 60: 2}, now)

    def compacted_and_swept():
        other.table.commit(other.begin_compaction(MIDNIGHT), now=now)
        assert other.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=now + GRACE_SECONDS + 1) == 2

    late = Rows(Interrupted(folder, compacted_and_swept))
    late.replace({MIDNIGHT + 120: 3}, now)
    assert other.values() == {MIDNIGHT: 1, MIDNIGHT + 60: 2, MIDNIGHT + 120: 3}
    assert len(other.files()) == 2


def test_a_compaction_leaves_what_was_committed_while_it_ran(folder):
    other = Rows(folder)
    other.replace({MIDNIGHT: 1, MIDNIGHT + 60: 1})
    other.replace({MIDNIGHT + 60: 2, MIDNIGHT + 120: 2})
    started = Rows(folder).begin_compaction(MIDNIGHT)
    other.replace({MIDNIGHT + 60: 3})
    at_its_end = Rows(Interrupted(folder, lambda: other.replace({MIDNIGHT + 120: 4})))
    at_its_end.table.commit(started, now=0)
    assert other.values() == {MIDNIGHT: 1, MIDNIGHT + 60: 3, MIDNIGHT + 120: 4}
    marks = other.table.fingerprints(MIDNIGHT, MIDNIGHT + HOUR)
    assert marks == {MIDNIGHT: "1", MIDNIGHT + 60: "3", MIDNIGHT + 120: "4"}


def test_a_commit_whose_answer_was_lost_is_not_made_again_over_a_later_one(folder):
    """The client repeats a put that seemed to fail, and is then told that the file is another."""

    class Deaf(Interrupted):
        def replace(self, *args):
            answer = self._folder.replace(*args)
            if self._meanwhile:
                self._meanwhile.pop()()
                return False
            return answer

    other = Rows(folder)
    Rows(Deaf(folder, lambda: other.replace({MIDNIGHT: 2}))).replace({MIDNIGHT: 1})
    assert other.values() == {MIDNIGHT: 2}


def test_a_table_keeps_a_file_for_an_hour_after_its_last_period_was_replaced_however_old_it_is(tmp_path):
    rows, now = Rows(LocalFolder(tmp_path)), float(MIDNIGHT + 2 * HOUR)
    rows.replace({MIDNIGHT: 1}, now - 2 * HOUR)
    rows.replace({MIDNIGHT + 60: 1}, now - 2 * HOUR)
    age(tmp_path, now - 2 * HOUR)
    reader = rows.table.select(MIDNIGHT, MIDNIGHT + HOUR)
    rows.table.commit(rows.begin_compaction(MIDNIGHT), now=now)
    rows.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=now)
    rows.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=now + GRACE_SECONDS)
    assert rows.values_of(reader, MIDNIGHT) == {MIDNIGHT: 1, MIDNIGHT + 60: 1}
    assert rows.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=now + GRACE_SECONDS + 1) == 2
    assert set(rows.table.select(MIDNIGHT, MIDNIGHT + HOUR).files) == rows.files()
    assert decode(rows.folder.read(MANIFEST)).retired == {}


def test_what_killed_runs_left_goes_by_its_age_and_what_counts_never_does(tmp_path):
    rows, now = Rows(LocalFolder(tmp_path)), time.time()
    rows.replace({MIDNIGHT: 1}, now)
    age(tmp_path, now - 2 * LEFTOVER_SECONDS)
    kept = {*rows.files(), MANIFEST}
    rows.stage({MIDNIGHT: 9})
    rows.folder.write("minutes/.spark-staging-1/date=2025-11-18/part-0.parquet", b"")
    rows.folder.write("minutes/_manifests/.2025-11-18.json.0", b"")
    assert rows.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=now + LEFTOVER_SECONDS - 60) == 0
    assert rows.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=now + LEFTOVER_SECONDS + 60) == 3
    assert {entry.path for entry in rows.folder.entries("")} == kept
    assert rows.values() == {MIDNIGHT: 1}


def age(root, at):
    for path in root.rglob("*"):
        os.utime(path, (at, at))


def test_a_run_over_midnight_is_corrected_on_both_sides_of_it(tmp_path):
    folder = LocalFolder(tmp_path)
    table = LakeTable(folder, "minutes", ROLLUP)
    before, after = MIDNIGHT - 60, MIDNIGHT

    def commit(run, *periods):
        places = ("date=2025-11-17/hour=23", "date=2025-11-18/hour=00")
        files = [f"minutes/{place}/run={run}/part-0.parquet" for place in places]
        table.commit(Staged(run, dict.fromkeys(periods, run), files), now=0)

    commit("one", before - 60, before, after, after + 60)
    commit("two", before, after)
    picked = table.select(before - 60, after + 120)
    assert {run: sorted(periods) for run, periods in picked.stale.items()} == {"one": [before, after]}
    assert len(picked.files) == 4


class Shared:
    """Several auditors on one lake: what each last said of periods of its own, and of one that all of them write."""

    WRITERS, OPERATIONS = 5, 50

    def __init__(self, folder):
        self.folder = folder
        self.last = [{} for _ in range(self.WRITERS)]
        self._clock, self._lock = MIDNIGHT + 3 * HOUR, threading.Lock()

    def now(self):
        """Half a minute later than whoever asked before: no operation takes an hour, and all of them take some."""
        with self._lock:
            self._clock += 30
            return float(self._clock)

    def write(self, number):
        rows, rng = Rows(self.folder), random.Random(number)
        for turn in range(self.OPERATIONS):
            value = number * 1000 + turn
            match rng.choice(["commit", "commit", "compact", "sweep"]):
                case "commit":
                    own = [MIDNIGHT + 60 * (1 + number + self.WRITERS * rng.randrange(3)) for _ in range(2)]
                    said = dict.fromkeys([MIDNIGHT, *own], value)
                    rows.replace(said, self.now())
                    self.last[number] |= said
                case "compact":
                    if rows.table.crowded(MIDNIGHT, MIDNIGHT + HOUR):
                        rows.table.commit(rows.begin_compaction(MIDNIGHT), now=self.now())
                case "sweep":
                    rows.table.sweep(MIDNIGHT, MIDNIGHT + HOUR, now=self.now())


def test_whatever_many_writers_commit_compact_and_sweep_at_once_nothing_is_lost_or_doubled(tmp_path):
    shared = Shared(LocalFolder(tmp_path))
    with ThreadPoolExecutor(Shared.WRITERS) as pool:
        for done in [pool.submit(shared.write, number) for number in range(Shared.WRITERS)]:
            done.result()
    found = Rows(shared.folder).values()
    common = found.pop(MIDNIGHT)
    assert common in {last[MIDNIGHT] for last in shared.last}
    assert found == {
        period: value for last in shared.last for period, value in last.items() if period != MIDNIGHT
    }


# The same in every order


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("commit"), st.sets(st.integers(0, 5), min_size=1)),
            st.tuples(st.just("begin"), st.integers(0, 2)),
            st.tuples(st.just("end"), st.integers(0, 2)),
            st.tuples(st.just("again"), st.integers(0, 30)),
        ),
        max_size=30,
    )
)
def test_rows_written_again_change_nothing_however_late_and_in_whatever_order_they_are_committed(steps):
    manifest, expected, compactions, made = Manifest(), {}, {}, []

    def says(held):
        return {period: commit.periods[period] for period, commit in held.live().items()}

    for number, (step, what) in enumerate(steps):
        run = f"run-{number}"
        if step == "commit":
            expected |= dict.fromkeys(what, run)
            made.append((Commit(run, [run], dict.fromkeys(what, run)), None))
            manifest = manifest.with_commit(made[-1][0], now=number)
        elif step == "begin" and manifest.commits:
            compactions[what] = (Commit(run, [run], says(manifest)), manifest)
        elif step == "end" and what in compactions:
            made.append(compactions.pop(what))
            manifest = manifest.with_commit(made[-1][0], now=number, over=made[-1][1])
        elif step == "again" and what < len(made):
            commit, over = made[what]
            assert manifest.with_commit(commit, now=number, over=over) == manifest
        assert says(manifest) == expected
        runs = [commit.run for commit in manifest.commits]
        assert set(runs) == {commit.run for commit in manifest.live().values()}
        assert sorted([*runs, *manifest.retired]) == sorted(commit.run for commit, _ in made)
