"""What the feed shows to be lost is told on the day's page, whenever it shows."""

from __future__ import annotations

import pytest

from snavio.spark.folders import LocalFolder
from snavio.spark.lake import Lake
from snavio.spark.page import Silence
from snavio.spark.report import report, silent_workers
from snavio.spark.reports import silences
from snavio.spark.schemas import FEED, ROLLUP
from snavio.spark.watermark import State, write_state

MIDNIGHT = 1_763_424_000  # 2025-11-18T00:00:00Z
DAY = 86_400
NEXT = MIDNIGHT + DAY
pytestmark = pytest.mark.timeout(600)


def item(worker, window, sequence, *, last=False, part=0, parts=1):
    return (window, 0, worker, "fast", part, parts, sequence, last, 1, 1, "", "")


def worker(name, windows, start=NEXT - 600, *, drained=False):
    """Items of these minutes from `start` on, numbered alike; what is not named never came."""
    return [item(name, start + 60 * i, i, last=drained and i == windows[-1]) for i in windows]


@pytest.fixture
def lake(tmp_path):
    return Lake(LocalFolder(tmp_path))


def record(spark, lake, items, mark="1"):
    windows = dict.fromkeys({row[0] for row in items}, mark)
    lake.feed.replace(spark.createDataFrame(items, FEED), windows, now=0)


def test_a_window_without_all_its_parts_is_told_once_they_are_no_longer_on_their_way(spark):
    feed = spark.createDataFrame(
        [
            item("whole", MIDNIGHT, 0, parts=2),
            item("whole", MIDNIGHT, 0, part=1, parts=2, last=True),
            item("torn", MIDNIGHT, 0, parts=3),
            item("torn", MIDNIGHT, 0, part=2, parts=3),
            # Written twice is no other part.
            item("torn", MIDNIGHT, 0, part=2, parts=3),
            item("torn", MIDNIGHT + 180, 3, last=True),
            item("writing", MIDNIGHT + 540, 9, parts=2),
        ],
        FEED,
    )
    found = sorted(tuple(row) for row in silences(feed, MIDNIGHT + 600).collect())
    assert found == [("torn", "fast", MIDNIGHT, 1, "partial"), ("torn", "fast", MIDNIGHT, 2, "gap")]


def test_an_item_out_of_order_says_nothing_of_workers_and_stops_nobody(spark):
    odd = (MIDNIGHT, 0, None, None, None, None, None, None, None, None, "", "")
    feed = spark.createDataFrame([odd, item("steady", MIDNIGHT + 600, 0)], FEED)
    assert silences(feed, MIDNIGHT + 600).collect() == []


def test_who_falls_silent_around_midnight_is_on_a_page(spark, lake):
    record(
        spark,
        lake,
        [
            *worker("steady", range(20)),
            *worker("dies-at-58", range(9)),
            *worker("dies-at-midnight", range(10)),
            *worker("drains-at-59", range(10), drained=True),
            *worker("skips-midnight", [0, 1, 9, 14, 15, 16, 17, 18, 19]),
            *worker("dies-tomorrow", range(15)),
        ],
    )
    until = NEXT + 600
    before = {silence.worker: silence for silence in silent_workers(spark, lake, MIDNIGHT, until).silences}
    assert before.keys() == {"dies-at-58", "dies-at-midnight", "skips-midnight"}
    assert before["dies-at-58"] == Silence("dies-at-58", "fast", NEXT - 120, 1, "crash")
    lost = silent_workers(spark, lake, NEXT, until)
    after = [(s.worker, s.window, s.windows, s.kind) for s in lost.silences]
    assert after == [
        ("dies-at-midnight", NEXT - 60, 1, "crash"),
        ("skips-midnight", NEXT - 60, 4, "gap"),
        ("dies-tomorrow", NEXT + 240, 1, "crash"),
    ]
    assert lost.more == 0


def test_of_very_many_silent_workers_the_first_are_named_and_the_others_counted(spark, lake):
    record(spark, lake, [row for i in range(60) for row in worker(f"fast-{i:02d}", [0])])
    lost = silent_workers(spark, lake, MIDNIGHT, NEXT + 600)
    assert [silence.worker for silence in lost.silences] == [f"fast-{i:02d}" for i in range(48)]
    assert lost.more == 12


def test_a_page_is_made_again_when_a_worker_turns_out_to_be_silent_and_not_while_the_audit_is(
    spark, lake, tmp_path
):
    row = (NEXT - 600, "a/x", "t", "c", "fast", "dispatched", 5, 7, "", "")
    lake.minutes.replace(spark.createDataFrame([row], ROLLUP), {NEXT - 600: "1"}, now=0)
    record(spark, lake, [*worker("steady", range(10)), *worker("dies", range(9))])
    page = tmp_path / "reports" / "2025-11-18.html"

    def pages(now):
        return report(spark, lake, MIDNIGHT, NEXT, now=now).pages

    write_state(lake.folder, State(NEXT))
    assert pages(NEXT) == ["reports/2025-11-18.html"]
    assert "fell silent" not in page.read_text()
    # The audit stands still: nobody can be said to have fallen silent since.
    assert pages(NEXT + 900) == []

    record(spark, lake, worker("steady", range(10, 16)), "2")
    write_state(lake.folder, State(NEXT + 360))
    assert pages(NEXT + 900) == ["reports/2025-11-18.html"]
    text = page.read_text()
    assert "dies" in text
    assert "steady" not in text
    assert "up to ten closed ones more" in text
    assert pages(NEXT + 1800) == []
