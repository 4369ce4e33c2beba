"""Tables of the lake, and the reports made from them."""

from __future__ import annotations

import os
import re
import time
from collections import Counter

import pytest

from snavio.spark.audit import _abuse_frame, recorded
from snavio.spark.bans import AbuseBan
from snavio.spark.dominance import Thresholds
from snavio.spark.folders import LocalFolder, open_folder
from snavio.spark.lake import Lake
from snavio.spark.page import Abuse, Failure, Hour, Report, Served, Silence, Use, page, stretches
from snavio.spark.report import report
from snavio.spark.reports import Prices, percentiles, silences
from snavio.spark.schemas import FEED, ROLLUP
from snavio.spark.table import GRACE_SECONDS
from snavio.wire.latency import latency_bucket, percentile
from snavio.wire.stats import DISPATCHED

MIDNIGHT = 1_763_424_000  # 2025-11-18T00:00:00Z
DAY = 86_400
pytestmark = pytest.mark.timeout(600)


def rows_of(spark, rows):
    """Rows (window, source, service, outcome, bucket, count) of one command, as the lake has them."""
    return spark.createDataFrame(
        [
            (w, source, "t", "c", service, outcome, bucket, n, "2025-11-18", f"{w % DAY // 3600:02d}")
            for w, source, service, outcome, bucket, n in rows
        ],
        ROLLUP,
    )


def sums(frame):
    return Counter({(row["window"], row["source"]): row["count"] for row in frame.collect()})


@pytest.fixture
def lake(tmp_path):
    return Lake(LocalFolder(tmp_path))


def test_a_table_replaces_periods_hides_what_is_staged_and_compacts_without_change(spark, lake):
    def minute(i, n):
        return (MIDNIGHT + 60 * i, "a/x", "fast", DISPATCHED, 5, n)

    start, end = MIDNIGHT, MIDNIGHT + 3600
    table = lake.minutes
    table.replace(rows_of(spark, [minute(0, 1), minute(1, 2)]), {start: "one", start + 60: "one"}, now=0)
    table.replace(rows_of(spark, [minute(1, 3)]), {start + 60: "two", start + 120: "two"}, now=0)
    expected = {(start, "a/x"): 1, (start + 60, "a/x"): 3}
    assert sums(table.read(spark, start, end)) == expected
    assert table.fingerprints(start, end) == {start: "one", start + 60: "two", start + 120: "two"}
    assert sums(table.read(spark, start + 60, start + 120)) == {(start + 60, "a/x"): 3}

    table.stage(rows_of(spark, [minute(0, 9)]), {start: "three"})
    assert sums(table.read(spark, start, end)) == expected

    assert table.crowded(start, end) == [start]
    assert table.compact(spark, start, end, now=0) == [start]
    assert sums(table.read(spark, start, end)) == expected
    assert table.crowded(start, end) == []
    # The rows of a period without any are none, and it is as done as others.
    table.commit(table.stage(rows_of(spark, []), {end: "empty"}), now=0)
    assert table.fingerprints(end, end + 60) == {end: "empty"}


def one_minute(spark, count=7):
    return rows_of(spark, [(MIDNIGHT, "a/x", "fast", DISPATCHED, 5, count)])


def test_a_lake_may_be_in_a_folder_of_any_name(spark, tmp_path):
    table = Lake(open_folder(str(tmp_path / "my lake é 100% a%20b+c#1"))).minutes
    table.replace(one_minute(spark), {MIDNIGHT: "one"}, now=0)
    assert sums(table.read(spark, MIDNIGHT, MIDNIGHT + 60)) == {(MIDNIGHT, "a/x"): 7}


def test_rows_that_spark_wrote_elsewhere_are_not_committed_as_none(spark, tmp_path):
    class Astray(LocalFolder):
        uri = f"file://{tmp_path / 'elsewhere'}"

    table = Lake(Astray(tmp_path / "lake")).minutes
    with pytest.raises(
        FileNotFoundError, match=r"Spark wrote to .*elsewhere/minutes/date=2025-11-18/.*nothing is found"
    ):
        table.replace(one_minute(spark), {MIDNIGHT: "one"}, now=0)
    assert table.fingerprints(MIDNIGHT, MIDNIGHT + 60) == {}
    table.replace(rows_of(spark, []), {MIDNIGHT: "none"}, now=0)
    assert table.fingerprints(MIDNIGHT, MIDNIGHT + 60) == {MIDNIGHT: "none"}


def test_an_hour_of_one_commit_is_crowded_by_its_files_and_one_of_many_commits_by_those(
    spark, lake, tmp_path
):
    table, end = lake.minutes, MIDNIGHT + 7200
    several = rows_of(spark, [(MIDNIGHT, f"a/{i}", "fast", DISPATCHED, 5, 1) for i in range(30)]).repartition(
        3
    )
    table.replace(several, {MIDNIGHT: "one"}, now=0)
    for i in range(2):
        table.replace(rows_of(spark, []), {MIDNIGHT + 3600 + 60 * i: "none"}, now=0)
    assert len(list(tmp_path.rglob("*.parquet"))) == 3
    assert table.crowded(MIDNIGHT, end, most_files=3) == []
    assert table.compact(spark, MIDNIGHT, end, now=0) == [MIDNIGHT, MIDNIGHT + 3600]
    assert len(table.select(MIDNIGHT, end).files) == 1
    assert sums(table.read(spark, MIDNIGHT, end)).total() == 30
    assert table.crowded(MIDNIGHT, end) == []


def test_every_ban_that_reaches_into_a_window_is_known_when_the_window_is_judged(spark, lake):
    limits = Thresholds()
    bans = [AbuseBan("a/x", MIDNIGHT + 300 * i, MIDNIGHT + 300 * i + 900, ("t",), 2, 2) for i in range(4)]
    marks = {ban.window: "1" for ban in bans}
    lake.abuse.replace(_abuse_frame(spark, bans), marks, now=0)
    judged = MIDNIGHT + 900
    assert recorded(spark, lake, limits, [judged]) == [ban for ban in bans if ban.until > judged]


def test_a_correction_that_comes_while_an_hour_is_compacted_stays(spark, lake, monkeypatch):
    def minute(i, n):
        return (MIDNIGHT + 60 * i, "a/x", "fast", DISPATCHED, 5, n)

    table, other = lake.minutes, Lake(lake.folder).minutes
    for i in range(2):
        table.replace(rows_of(spark, [minute(i, 1)]), {MIDNIGHT + 60 * i: "one"}, now=0)
    stage = table.stage

    def interrupted(frame, fingerprints):
        staged = stage(frame, fingerprints)
        other.replace(rows_of(spark, [minute(1, 7)]), {MIDNIGHT + 60: "two"}, now=0)
        return staged

    monkeypatch.setattr(table, "stage", interrupted)
    table.compact(spark, MIDNIGHT, MIDNIGHT + 3600, now=0)
    assert sums(table.read(spark, MIDNIGHT, MIDNIGHT + 3600)) == {
        (MIDNIGHT, "a/x"): 1,
        (MIDNIGHT + 60, "a/x"): 7,
    }
    assert table.fingerprints(MIDNIGHT, MIDNIGHT + 3600) == {MIDNIGHT: "one", MIDNIGHT + 60: "two"}


def test_a_reader_that_has_begun_outlasts_a_compaction_of_files_from_hours_ago(spark, lake, tmp_path):
    """As it is in production: an hour is compacted when most of its files are over an hour old, and reports run meanwhile."""
    table, now = lake.minutes, time.time()
    for i in range(3):
        row = (MIDNIGHT + 60 * i, "a/x", "fast", DISPATCHED, 5, i + 1)
        table.replace(rows_of(spark, [row]), {MIDNIGHT + 60 * i: "one"}, now=now - 7200)
    for path in tmp_path.rglob("*"):
        os.utime(path, (now - 7200, now - 7200))
    expected = {(MIDNIGHT + 60 * i, "a/x"): i + 1 for i in range(3)}
    begun = table.read(spark, MIDNIGHT, MIDNIGHT + 3600)

    assert table.compact(spark, MIDNIGHT, MIDNIGHT + 3600, now=now) == [MIDNIGHT]
    lake.sweep(MIDNIGHT, MIDNIGHT + 3600, now=now + GRACE_SECONDS - 60)
    assert sums(begun) == expected

    lake.sweep(MIDNIGHT, MIDNIGHT + 3600, now=now + GRACE_SECONDS + 60)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert sums(table.read(spark, MIDNIGHT, MIDNIGHT + 3600)) == expected


def test_percentiles_in_sql_are_those_of_the_merged_histogram(spark):
    merged = Counter({0: 3, 17: 40, 18: 50, 60: 6, 90: 1})
    rows = [
        (MIDNIGHT, "a/x", "fast", DISPATCHED, bucket, n) for bucket, n in merged.items() for _ in range(2)
    ]
    alone = [
        (MIDNIGHT, "b/x", "slow", DISPATCHED, latency_bucket(12.0), 1),
        (MIDNIGHT, "c/x", "fast", "acl-deny", -1, 9),
    ]
    found = {row["source"]: row for row in percentiles(rows_of(spark, rows + alone), ["source"]).collect()}
    assert set(found) == {"a/x", "b/x"}
    for name, quantile in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert found["a/x"][name] == pytest.approx(percentile(merged, quantile), abs=1e-3)
        assert found["b/x"][name] == pytest.approx(12.0, rel=0.05)


def test_silence_tells_a_crash_from_a_drain_and_finds_gaps(spark):
    def item(worker, i, *, last=False):
        return (MIDNIGHT + 60 * i, 0, worker, "fast", 0, 1, i, last, 1, 1, "2025-11-18", "00")

    feed = spark.createDataFrame(
        [
            *(item("steady", i) for i in range(10)),
            *(item("drained", i, last=i == 3) for i in range(4)),
            *(item("crashed", i) for i in range(4)),
            *(item("gappy", i) for i in (0, 1, 4, 5, 6, 7, 8, 9)),
        ],
        FEED,
    )
    found = sorted(tuple(row) for row in silences(feed, MIDNIGHT + 600).collect())
    assert found == [
        ("crashed", "fast", MIDNIGHT + 180, 1, "crash"),
        ("gappy", "fast", MIDNIGHT + 60, 2, "gap"),
    ]


def test_reports_are_exact_and_late_data_corrects_them(spark, lake, tmp_path):
    hour = MIDNIGHT + 3600
    first = [
        (MIDNIGHT, "a/x", "fast", DISPATCHED, 40, 600),
        (MIDNIGHT, "a/y", "slow", DISPATCHED, 60, 300),
        (MIDNIGHT, "b/x", "fast", "acl-deny", -1, 100),
    ]
    lake.minutes.replace(rows_of(spark, first), {MIDNIGHT: "1"}, now=0)
    lake.minutes.replace(rows_of(spark, [(hour, "a/x", "fast", DISPATCHED, 41, 50)]), {hour: "1"}, now=0)
    prices = Prices(fast=10, slow=20, rejected=5, fixed_a_day=21)

    def run():
        return report(spark, lake, MIDNIGHT, MIDNIGHT + DAY, now=MIDNIGHT + DAY, prices=prices)

    done = run()
    assert (done.hours, done.days, done.pages) == (2, ["2025-11-18"], ["reports/2025-11-18.html"])
    used = {row["tenant"]: row for row in lake.usage.read(spark, MIDNIGHT, MIDNIGHT + DAY).collect()}
    assert (used["a"]["fast"], used["a"]["slow"], used["a"]["rejected"], used["a"]["commands"]) == (
        650,
        300,
        0,
        950,
    )
    assert used["a"]["cost_usd"] == pytest.approx((650 * 10 + 300 * 20) / 1e6 + 21 * 950 / 1050, abs=1e-6)
    assert used["b"]["cost_usd"] == pytest.approx(100 * 5 / 1e6 + 21 * 100 / 1050, abs=1e-6)
    assert used["b"]["p50"] is None
    body = (tmp_path / "reports" / "2025-11-18.html").read_text()
    assert "acl-deny" in body

    assert run().pages == []

    lake.minutes.replace(rows_of(spark, [(hour, "a/x", "fast", DISPATCHED, 41, 70)]), {hour: "2"}, now=0)
    assert run().hours == 1
    used = {row["tenant"]: row["fast"] for row in lake.usage.read(spark, MIDNIGHT, MIDNIGHT + DAY).collect()}
    assert used == {"a": 670, "b": 0}
    (failed,) = lake.failures.read(spark, MIDNIGHT, MIDNIGHT + DAY).collect()
    assert (failed["tenant"], failed["reason"], failed["count"]) == ("b", "acl-deny", 100)


def test_the_reports_size_their_shuffles_for_what_they_read(spark, lake):
    setting = "spark.sql.shuffle.partitions"
    lake.minutes.replace(one_minute(spark), {MIDNIGHT: "1"}, now=0)
    before = spark.conf.get(setting)
    spark.conf.set(setting, "7")
    try:
        report(spark, lake, MIDNIGHT, MIDNIGHT + DAY, now=MIDNIGHT + DAY)
        assert spark.conf.get(setting) == "2"
    finally:
        spark.conf.set(setting, before)


def test_whoever_goes_on_while_banned_is_on_the_page_once():
    def found(window, source, *targets):
        return Abuse(window, source, list(targets), 2, window + 900)

    told = stretches(
        [
            found(0, "a/x", "bot"),
            found(300, "b/y", "bot"),
            found(900, "a/x", "mail"),
            found(1800, "a/x", "bot"),
            # Its last ban had ended by then.
            found(1500, "b/y", "bot"),
        ]
    )
    assert told == [
        Abuse(0, "a/x", ["bot", "mail"], 6, 2700),
        Abuse(300, "b/y", ["bot"], 2, 1200),
        Abuse(1500, "b/y", ["bot"], 2, 2400),
    ]


def test_a_page_holds_everything_itself_and_escapes_what_others_chose():
    evil = "<script>alert(1)</script>"
    html = page(
        Report(
            day="2025-11-18",
            made_at=MIDNIGHT,
            prices=Prices(),
            hours=[
                Hour(MIDNIGHT, 5, 2, 1, 3.0, 9.0, 1200.0),
                Hour(MIDNIGHT + 7200, 0, 0, 0, None, None, None),
            ],
            usage=[Use(evil, 8, 5, 2, 1, 3.0, 9.0, 1200.0, 0.5)],
            services=[Served(evil, evil, 1, 1, 1, None, None, None)],
            failures=[Failure(evil, 1)],
            abuse=[Abuse(MIDNIGHT, evil, [evil], 2, MIDNIGHT + 600)],
            silences=[Silence(evil, "fast", MIDNIGHT, 1, "crash")],
            more_silences=1234,
            items=3,
            malformed=1,
        )
    )
    assert "<script" not in html
    assert not re.search(r"(src|href|url)\s*[=(]", html)
    assert "And 1,234 more like these." in html
    # Abuse that was found too late is on the page as well, and nobody was banned for it.
    assert "1 cases of dominance" in html
    assert "banned until" not in html
    empty = page(
        Report(
            day="2025-11-18",
            made_at=0,
            prices=Prices(),
            hours=[],
            usage=[],
            services=[],
            failures=[],
            abuse=[],
            silences=[],
            more_silences=0,
            items=0,
            malformed=0,
        )
    )
    assert "no commands" in empty
