"""The fairness feed: histograms, the item encoding and what it refuses."""

from __future__ import annotations

import math
import zlib
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.wire.latency import (
    LAST_BUCKET,
    RELATIVE_ERROR,
    bucket_bounds,
    bucket_value,
    latency_bucket,
    percentile,
)
from snavio.wire.stats import (
    DISPATCHED,
    FORMAT,
    MAX_ITEM_ROWS,
    MAX_WORD_LENGTH,
    SHARDS,
    MalformedStats,
    StatRow,
    Tally,
    decode_rows,
    encode_rows,
    encode_window,
    shard_of,
    window_of,
)

words = st.text(min_size=1, max_size=8)
rows = st.lists(
    st.builds(
        StatRow,
        words,
        words,
        words,
        words,
        st.integers(-1, LAST_BUCKET),
        st.integers(min_value=1, max_value=2**34),
    ),
    max_size=40,
)


@given(st.floats(min_value=0.1, max_value=1e9))
def test_a_latency_lies_in_its_bucket_and_near_its_value(ms):
    bucket = latency_bucket(ms)
    low, high = bucket_bounds(bucket)
    assert low * (1 - 1e-9) < ms <= high * (1 + 1e-9)
    if bucket:
        assert abs(bucket_value(bucket) - ms) <= RELATIVE_ERROR * ms * (1 + 1e-6)


@given(st.floats())
def test_every_float_has_a_bucket(ms):
    assert 0 <= latency_bucket(ms) <= LAST_BUCKET


@given(
    st.lists(st.floats(min_value=0.2, max_value=1e6), min_size=1),
    st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
)
def test_a_percentile_of_buckets_is_near_that_of_the_values(values, quantile):
    exact = sorted(values)[max(1, math.ceil(quantile * len(values))) - 1]
    found = percentile(Counter(map(latency_bucket, values)), quantile)
    assert found == pytest.approx(exact, rel=RELATIVE_ERROR * (1 + 1e-6))


def test_nothing_counted_has_no_percentile():
    assert percentile({}, 0.5) is None


@given(rows)
def test_rows_survive_the_item(given_rows):
    assert decode_rows(encode_rows(given_rows)) == given_rows


@given(st.binary())
def test_what_is_not_rows_is_malformed_and_nothing_else(junk):
    for encoded in (junk, bytes([FORMAT]) + junk, bytes([FORMAT]) + zlib.compress(junk)):
        try:
            decode_rows(encoded)
        except MalformedStats as error:
            assert str(error).endswith(".")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([["a"], [0], [0], [0], [0], [0], []], "length"),
        ([["a"], [1], [0], [0], [0], [0], [1]], "past the last word"),
        ([["a"], [0], [0], [0], [0], [256], [1]], "bucket|<= 255"),
        ([["a"], [0], [0], [0], [0], [0], [0]], ">= 1"),
        ([["a"], [0] * 2, [0] * 2, [0] * 2, [0] * 2, [0] * 2, [2**40, 1]], "more than a worker can"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(columns, says):
    with pytest.raises(MalformedStats, match=says):
        decode_rows(bytes([FORMAT]) + zlib.compress(msgspec.msgpack.encode(columns)))


def columns_of(words, rows):
    """So many rows of one word, which deflate to next to nothing."""
    zeros = [0] * rows
    return [words, zeros, zeros, zeros, zeros, zeros, [1] * rows]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (columns_of(["w" * (MAX_WORD_LENGTH + 1)], 1), f"length <= {MAX_WORD_LENGTH} "),
        (columns_of(["w"], MAX_ITEM_ROWS + 1), f"length <= {MAX_ITEM_ROWS} "),
        (columns_of(["w"] * (4 * MAX_ITEM_ROWS + 1), 1), f"length <= {4 * MAX_ITEM_ROWS} "),
        (columns_of(["w" * MAX_WORD_LENGTH] * 2**15, 1), "too large"),
    ],
)
def test_a_small_item_that_would_become_a_large_one_is_refused(columns, says):
    encoded = bytes([FORMAT]) + zlib.compress(msgspec.msgpack.encode(columns))
    assert len(encoded) < 50_000
    with pytest.raises(MalformedStats, match=says):
        decode_rows(encoded)
    assert decode_rows(
        bytes([FORMAT]) + zlib.compress(msgspec.msgpack.encode(columns_of(["w" * 256], 2**15)))
    )


@pytest.mark.parametrize(
    "many",
    [
        # What deflates well is not kept apart by its weight alone.
        [StatRow("a/x", "t", "c", f"r{i % 9}", i % 90, 1) for i in range(2 * MAX_ITEM_ROWS + 5)],
        [StatRow(f"{i:05d}" + "w" * 250, "t", "c", DISPATCHED, 3, 1) for i in range(MAX_ITEM_ROWS)],
        [StatRow("s" * 1000 + str(i), "t" * 1000, "c" * 1000, DISPATCHED, 3, 1) for i in range(20)],
        [StatRow(*(chr(0x1F600 + i) * 1000 for i in range(4)), 3, 1)],
    ],
    ids=["rows", "bytes", "words", "one row"],
)
def test_whatever_a_worker_counts_it_writes_nothing_that_a_reader_would_refuse(many):
    items = encode_window(many, worker="fast-1", service="fast", window=120, sequence=4)
    found = [row for item in items for row in decode_rows(item.rows)]
    assert [row.source for row in found] == [row.source[:MAX_WORD_LENGTH] for row in many]
    assert max(item.row_count for item in items) <= MAX_ITEM_ROWS


def test_rows_of_a_later_format_and_bombs_are_refused():
    with pytest.raises(MalformedStats, match="format 9"):
        decode_rows(b"\x09")
    with pytest.raises(MalformedStats, match="too large"):
        decode_rows(bytes([FORMAT]) + zlib.compress(bytes(5 * 1024 * 1024)))
    with pytest.raises(MalformedStats, match="cut short"):
        decode_rows(encode_rows([StatRow("a/b", "t", "c", DISPATCHED, 3, 1)])[:-3])


def test_a_window_splits_into_parts_that_hold_every_row_once_and_keep_their_weight():
    many = [
        StatRow(f"tenant-{i}/service", f"target-{i * 7919 % 997}", "c", DISPATCHED, i % 90, i + 1)
        for i in range(2000)
    ]
    items = encode_window(many, worker="fast-1", service="fast", window=120, sequence=4, max_bytes=6_000)
    assert len(items) > 1
    assert [row for item in items for row in decode_rows(item.rows)] == many
    assert all(len(item.rows) <= 6_000 for item in items)
    assert {(item.pk, item.parts, item.sequence) for item in items} == {
        (f"120#{shard_of('fast-1'):02d}", len(items), 4)
    }
    assert [item.sk for item in items] == [f"fast-1#{part}" for part in range(len(items))]
    assert items == encode_window(
        many, worker="fast-1", service="fast", window=120, sequence=4, max_bytes=6_000
    )


def test_an_empty_window_is_still_told():
    (item,) = encode_window([], worker="w", service="slow", window=0, sequence=0, last=True)
    assert (item.row_count, item.last, decode_rows(item.rows)) == (0, True, [])


def test_keys_refuse_what_would_collide():
    with pytest.raises(ValueError, match="multiple of 60"):
        encode_window([], worker="w", service="fast", window=61, sequence=0)
    with pytest.raises(ValueError, match="'#'"):
        encode_window([], worker="w#1", service="fast", window=60, sequence=0)


def test_a_tally_counts_and_starts_anew():
    tally = Tally()
    for _ in range(3):
        tally.dispatched("a/b", "t", "c", 5.0)
    tally.rejected("a/b", "t", "c", "acl-deny")
    assert tally.close() == [
        StatRow("a/b", "t", "c", "acl-deny", -1, 1),
        StatRow("a/b", "t", "c", DISPATCHED, latency_bucket(5.0), 3),
    ]
    assert tally.close() == []


def test_shards_are_stable_and_used_evenly():
    assert shard_of("fast-1") == zlib.crc32(b"fast-1") % SHARDS
    assert len({shard_of(f"fast-{i}") for i in range(200)}) == SHARDS
    assert window_of(119.99) == 60
