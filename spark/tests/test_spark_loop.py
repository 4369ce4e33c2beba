"""The commands around the jobs: what is typed is checked, what fails is told in a sentence, and a loop outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from botocore.exceptions import ClientError, NoRegionError
from pyspark.errors import PySparkException

from snavio.aws.errors import Refused, SnavioError
from snavio.spark import cli
from snavio.spark.clients import client_of
from snavio.spark.failures import sentence
from snavio.spark.folders import open_folder
from snavio.spark.loop import run_at
from snavio.spark.report import Reported
from snavio.spark.reports import Prices
from snavio.spark.watermark import State, write_state

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "Query")
WRAPPED = """An error occurred while calling o87.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 0.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/pyspark/worker.py", line 1, in main
    process()

  File "/x/snavio/spark/store.py", line 2, in query_shard
    page = client.query(**request)
botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "http://127.0.0.1:1/"

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
"""


class JavaError(Exception):
    """As Spark's bridge to the JVM raises it."""

    __module__ = "py4j.protocol"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PySparkException(WRAPPED), 'Could not connect to the endpoint URL: "http://127.0.0.1:1/".'),
        (JavaError("An error occurred while calling o1.save.\n: java.io.IOException: No space left\n\tat x"),
         "java.io.IOException: No space left."),
        (Refused("throttled"), "throttled."),
        (OSError(), "OSError."),
    ],
)  # fmt: skip
def test_an_error_is_told_by_its_cause_on_one_line(error, said):
    assert sentence(error) == said


def test_a_missing_region_is_told_with_what_to_do():
    assert "AWS variables" in sentence(NoRegionError())


class Job:
    """Fails as it is told to, run by run."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.done = []
        self.told = []

    def run(self, now):
        error = self.errors[int(now)]
        if error:
            raise error
        self.done.append(now)

    def start(self, **options):
        run_at(range(len(self.errors)), self.run, failed=self.told.append, **options)


def test_a_loop_goes_on_after_what_passes_and_tells_of_it():
    job = Job(THROTTLED, None, Refused("busy"), JavaError("x"), OSError("full"), None)
    job.start(most_failures=4)
    assert job.done == [1, 5]
    assert len(job.told) == 4


def test_a_loop_gives_up_after_so_many_failures_in_a_row():
    job = Job(OSError("1"), None, OSError("2"), OSError("3"), None)
    with pytest.raises(OSError, match="3"):
        job.start(most_failures=2)
    assert job.done == [1]


def test_an_error_of_ours_ends_a_loop_at_once():
    job = Job(None, KeyError("x"), None)
    with pytest.raises(KeyError):
        job.start()
    assert (job.done, job.told) == ([0], [])


@pytest.mark.parametrize(
    "wrong",
    [
        ["audit", "--every", "0"],
        ["audit", "--every", "-5"],
        ["audit", "--every", "nan"],
        ["audit", "--every", "inf"],
        ["audit", "--target-share", "1.2"],
        ["audit", "--spread-share", "-0.1"],
        ["audit", "--target-share", "nan"],
        ["audit", "--spread-targets", "0"],
        ["audit", "--late-windows", "0"],
        ["report", "--days", "0"],
        ["audit", "--since", "yesterday"],
        ["report", "--days", "1000000"],
        ["report", "--price", "quick=1"],
        ["report", "--price", "fast"],
        ["report", "--price", "fast=nan"],
        ["report", "--price", "fast=inf"],
        ["report", "--price", "fixed_a_day=-1"],
    ],
)
def test_a_wrong_option_is_wrong_usage_and_starts_nothing(wrong, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: pytest.fail("started"))
    assert cli.main([*wrong, "--lake", str(tmp_path)]) == 2
    assert wrong[1] in capsys.readouterr().err


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No AWS in the environment."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    client_of.cache_clear()
    yield
    client_of.cache_clear()


def test_a_missing_region_ends_in_one_sentence_before_spark_is_started(
    nowhere, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: pytest.fail("started"))
    assert cli.main(["audit", "--lake", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: You must specify a region.")
    assert said.count("\n") == 1
    with pytest.raises(NoRegionError):
        cli.main(["audit", "--lake", str(tmp_path), "--debug"])


class Session:
    """In the place of Spark's."""

    stopped = False

    def stop(self):
        self.stopped = True


def audited(folder):
    """Make a lake of it, as an audit would."""
    write_state(open_folder(str(folder)), State(0))


def test_a_report_on_a_folder_that_is_no_lake_says_so_and_starts_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: pytest.fail("started"))
    assert cli.main(["report", "--lake", str(tmp_path / "lakee")]) == 1
    assert capsys.readouterr().err.startswith(f"Error: There is no lake at {tmp_path}/lakee")
    assert list(tmp_path.iterdir()) == []


def test_a_report_gets_the_prices_and_days_that_were_typed(tmp_path, monkeypatch):
    asked = []

    def run(_, __, start, end, *, prices, **___):
        asked.append((start, end, prices))
        return Reported(hours=0, days=[], pages=[])

    audited(tmp_path)
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: Session())
    monkeypatch.setattr(cli, "run_report", run)
    typed = ["--days", "3660", "--until", "1970-01-02", "--price", "fast=4.5", "--price", "slow=0"]
    assert cli.main(["report", "--lake", str(tmp_path), *typed]) == 0
    assert asked == [(0, 2 * 86_400, Prices(fast=4.5, slow=0.0))]


def test_a_first_run_begins_at_the_time_that_was_typed_in_utc(tmp_path, monkeypatch):
    asked = []

    def run(*_, since, **__):
        asked.append(since)
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "query_shard", lambda *_: iter([[]]))
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: Session())
    monkeypatch.setattr(cli, "run_audit", run)
    arguments = ["audit", "--lake", str(tmp_path), "--every", "60"]
    # Ctrl-C is no error of anybody's.
    assert [cli.main([*arguments, *more]) for more in ([], ["--since", "2025-11-18T12:00"])] == [130, 130]
    assert asked == [None, 1_763_467_200.0]


INTERRUPTED = """
    import sys
    from snavio.spark import cli

    def run(session, *_, **__):
        print("working", flush=True)
        session.range(10**12).selectExpr("sum(id % 7)").collect()

    cli.run_report = run
    sys.exit(cli.main(sys.argv[1:]))
"""


def test_ctrl_c_while_spark_works_ends_quietly_with_the_code_of_an_interrupt(tmp_path):
    audited(tmp_path)
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), "report", "--lake", str(tmp_path)]
    with (tmp_path / "said").open("w+") as said:
        job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
        assert job.stdout.readline() == b"working\n"
        job.send_signal(signal.SIGINT)
        job.communicate()
        said.seek(0)
        # Java's own line, which nothing keeps it from saying, and nothing of Spark's.
        assert [line for line in said.read().split("\n") if line and "incubator modules" not in line] == []
    assert job.returncode == 130


def test_a_failed_job_is_an_error_the_command_line_tells_in_a_sentence(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise JavaError("An error occurred while calling o1.x.\n: java.lang.OutOfMemoryError: heap")

    session = Session()
    audited(tmp_path)
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: session)
    monkeypatch.setattr(cli, "run_report", broken)
    with pytest.raises(SnavioError, match=r"^java.lang.OutOfMemoryError: heap\.$"):
        cli.spark.main(["report", "--lake", str(tmp_path)], standalone_mode=False)
    assert session.stopped
