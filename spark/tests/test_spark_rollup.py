"""Rollups, dominance and percentiles on small frames, and against a plain reference."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

from chispa import assert_df_equality
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.spark.dominance import Thresholds, abuse, violations
from snavio.spark.rollup import coarsen, faults, fingerprints, rollup
from snavio.spark.schemas import ABUSE, COARSE, COUNTS, FAULTS, ITEMS, ROLLUP, VIOLATIONS
from snavio.wire.stats import DISPATCHED

NOON = 1_763_467_200  # 2025-11-18T12:00:00Z


def counts_of(spark, rows):
    """Rows (window, service, source, target, command, outcome, bucket, count) as the feed has them."""
    return spark.createDataFrame([(*row, *[None] * 4) for row in rows], COUNTS)


def minutes_of(spark, rows):
    """Rows (window, source, target, count) of dispatches, as the lake has them."""
    return spark.createDataFrame(
        [(w, s, t, "c", "fast", DISPATCHED, 40, n, "2025-11-18", "12") for w, s, t, n in rows], ROLLUP
    )


def test_counts_of_workers_add_up_and_malformed_items_stay_out(spark):
    key = ("fast", "a/x", "t", "c")
    counts = counts_of(
        spark,
        [
            (NOON, *key, DISPATCHED, 40, 3),
            (NOON, *key, DISPATCHED, 40, 4),
            (NOON, *key, DISPATCHED, 41, 1),
            (NOON, *key, "acl-deny", -1, 2),
            (NOON + 3660, "slow", *key[1:], DISPATCHED, 40, 5),
        ],
    ).union(spark.createDataFrame([(NOON, *[None] * 7, "w#0", "cut short", "{}", b"x")], COUNTS))
    expected = spark.createDataFrame(
        [
            (NOON, "a/x", "t", "c", "fast", DISPATCHED, 40, 7, "2025-11-18", "12"),
            (NOON, "a/x", "t", "c", "fast", DISPATCHED, 41, 1, "2025-11-18", "12"),
            (NOON, "a/x", "t", "c", "fast", "acl-deny", -1, 2, "2025-11-18", "12"),
            (NOON + 3660, "a/x", "t", "c", "slow", DISPATCHED, 40, 5, "2025-11-18", "13"),
        ],
        ROLLUP,
    )
    assert_df_equality(rollup(counts), expected, ignore_row_order=True, ignore_nullable=True)
    aside = spark.createDataFrame([(NOON, "w#0", "cut short", "{}", b"x", "2025-11-18", "12")], FAULTS)
    assert_df_equality(faults(counts), aside, ignore_nullable=True)


def test_minutes_add_up_to_hours(spark):
    minutes = minutes_of(
        spark, [(NOON, "a/x", "t", 3), (NOON + 60, "a/x", "t", 4), (NOON + 3600, "a/x", "t", 1)]
    )
    expected = spark.createDataFrame(
        [
            (NOON, "a/x", "t", "c", "fast", DISPATCHED, 40, 7, "2025-11-18"),
            (NOON + 3600, "a/x", "t", "c", "fast", DISPATCHED, 40, 1, "2025-11-18"),
        ],
        COARSE,
    )
    assert_df_equality(coarsen(minutes, 3600), expected, ignore_row_order=True, ignore_nullable=True)


def test_a_fingerprint_changes_with_any_item_and_with_nothing_else(spark):
    def fingerprint(*items):
        rows = [(NOON, 3, worker, "fast", 0, 1, 5, False, 10, digest) for worker, digest in items]
        (found,) = fingerprints(spark.createDataFrame(rows, ITEMS)).collect()
        return found["fingerprint"]

    one = fingerprint(("w1", 7), ("w2", 8))
    assert one == fingerprint(("w2", 8), ("w1", 7))
    assert (
        len(
            {
                one,
                fingerprint(("w1", 7)),
                fingerprint(("w1", 7), ("w2", 9)),
                fingerprint(("w1", 8), ("w2", 7)),
            }
        )
        == 4
    )


LIMITS = Thresholds(min_dispatches=50)


CASES = [
    ("dominates a contended target", [("a/x", "t", 900), ("b/y", "t", 100)], [("a/x", "t", "target")]),
    ("nobody competes", [("a/x", "t", 1000)], []),
    ("the others want next to nothing", [("a/x", "t", 950), ("b/y", "t", 50)], []),
    (
        "small competitors are many",
        [("a/x", "t", 970), ("b/y", "t", 10), ("c/y", "t", 10), ("d/y", "t", 10)],
        [("a/x", "t", "target")],
    ),
    ("exactly the threshold is allowed", [("a/x", "t", 800), ("b/y", "t", 200)], []),
    ("too little traffic to tell", [("a/x", "t", 40), ("b/y", "t", 5)], []),
    (
        "too much of several",
        [("a/x", t, 70) for t in "tuv"] + [("b/y", t, 30) for t in "tuv"],
        [("a/x", t, "spread") for t in "tuv"],
    ),
    ("two are not several", [("a/x", t, 70) for t in "tu"] + [("b/y", t, 30) for t in "tu"], []),
    ("the third is not contended", [("a/x", t, 70) for t in "tuv"] + [("b/y", t, 30) for t in "tu"], []),
]


def test_dominance_needs_a_large_share_of_what_others_want(spark):
    # Each case in a minute of its own, so that one job decides them all.
    minutes = [(NOON + 60 * i, *row) for i, (_, rows, _) in enumerate(CASES) for row in rows]
    found = violations(minutes_of(spark, minutes), LIMITS)
    assert found.schema.fieldNames() == VIOLATIONS.fieldNames()
    kinds = sorted((row["window"], row["source"], row["target"], row["kind"]) for row in found.collect())
    for i, (case, _, expected) in enumerate(CASES):
        assert [kind[1:] for kind in kinds if kind[0] == NOON + 60 * i] == sorted(expected), case


def test_one_bad_minute_is_a_burst_and_two_in_a_ban_window_are_abuse(spark):
    def minute(at, source):
        return [(at, source, "t", 900), (at, "honest/y", "t", 100)]

    rows = (
        minute(NOON, "a/x") + minute(NOON + 240, "a/x") + minute(NOON + 60, "b/x") + minute(NOON + 360, "b/x")
    )
    found = abuse(violations(minutes_of(spark, rows), LIMITS), LIMITS)
    expected = spark.createDataFrame([(NOON, "a/x", ["t"], 2, 2, NOON + 900, "2025-11-18", "12")], ABUSE)
    assert_df_equality(found, expected, ignore_nullable=True)


WINDOWS = [NOON + 60 * i for i in range(7)]
TARGETS = ["t", "u", "v"]
row_of_traffic = st.tuples(
    st.sampled_from(WINDOWS),
    st.sampled_from(["fast", "slow"]),
    st.sampled_from(["a/x", "b/x", "c/x", "d/x", "e/x"]),
    st.sampled_from(TARGETS),
    st.sampled_from(["c", "d"]),
    st.sampled_from([DISPATCHED, DISPATCHED, DISPATCHED, "acl-deny"]),
    st.integers(0, 3),
    st.integers(1, 400),
)
# A source, the minutes and targets it floods, and how much of it there is for each dispatch of the others.
flood = st.tuples(
    st.sampled_from(["a/x", "evil/y"]),
    st.sets(st.sampled_from(WINDOWS), min_size=3, max_size=7),
    st.sets(st.sampled_from(TARGETS), min_size=1),
    st.sampled_from([6, 5, 8, 3, 1.6, 12]),
)


@st.composite
def traffic(draw):
    """What honest sources do, and floods among it that are too much more often than not."""
    rows = draw(st.lists(row_of_traffic, max_size=100))
    for source, windows, targets, factor in draw(st.lists(flood, min_size=1, max_size=2)):
        for window, target in itertools.product(sorted(windows), sorted(targets)):
            rows.append((window, "fast", "honest/z", target, "c", DISPATCHED, 0, 40))
            others = sum(
                row[-1]
                for row in rows
                if (row[0], row[3], row[5]) == (window, target, DISPATCHED) and row[2] != source
            )
            rows.append((window, "fast", source, target, "d", DISPATCHED, 1, int(others * factor)))
    return rows


def test_spark_agrees_with_a_plain_reference(spark):
    abusive = []

    @settings(max_examples=8, deadline=None)
    @given(traffic())
    def agree(rows):
        rolled = rollup(counts_of(spark, rows)).cache()
        sums = Counter()
        for window, service, source, target, command, outcome, bucket, n in rows:
            sums[window, source, target, command, service, outcome, bucket] += n
        assert {tuple(row)[:7]: row["count"] for row in rolled.collect()} == sums
        found = abuse(violations(rolled, LIMITS), LIMITS)
        expected = plain_abuse(sums, LIMITS)
        abusive.append(bool(expected))
        assert (
            sorted((r["window"], r["source"], tuple(r["targets"]), r["violations"]) for r in found.collect())
            == expected
        )
        rolled.unpersist()

    agree()
    assert any(abusive), "nobody abused, so nothing was compared"


def plain_abuse(sums, limits):
    """The same rules, written as one would on paper."""
    shares = defaultdict(Counter)
    for (window, source, target, _, _, outcome, _), n in sums.items():
        if outcome == DISPATCHED:
            shares[window, target][source] += n
    over = defaultdict(list)
    for (window, target), by_source in shares.items():
        total = by_source.total()
        for source, n in by_source.items():
            others = len(by_source) - 1
            contended = others > 0 and (
                total - n >= limits.meaningful_share * total or others >= limits.min_competitors
            )
            if contended and total >= limits.min_dispatches and n / total > limits.spread_share:
                over[window, source].append((target, n / total > limits.target_share))
    bad = defaultdict(list)
    for (window, source), targets in over.items():
        slot = window // limits.ban_window_seconds * limits.ban_window_seconds
        bad[slot, source] += [
            (window, target) for target, alone in targets if alone or len(targets) >= limits.spread_targets
        ]
    return sorted(
        (slot, source, tuple(sorted({target for _, target in seen})), len(seen))
        for (slot, source), seen in bad.items()
        if len({window for window, _ in seen}) >= limits.min_minutes
    )
