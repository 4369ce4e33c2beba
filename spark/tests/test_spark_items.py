"""What a worker wrote is read, or set aside: no item stops the reading of the others."""

from __future__ import annotations

import json
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.spark.arrow import batch_of_columns, batch_of_rows, kinds_of, merged
from snavio.spark.items import HEAD, counts_of, plain, readable
from snavio.spark.rollup import fingerprints
from snavio.spark.schemas import COUNTS, ITEMS
from snavio.spark.source import _CountReader
from snavio.spark.store import Store, typed
from snavio.wire.stats import MAX_ITEM_ROWS, MAX_WORD_LENGTH, MalformedStats, StatRow, encode_window

WINDOW = 1_763_467_200
ROWS = [StatRow("a/x", "t", "c", "dispatched", 5, 3), StatRow("b/y", "t", "c", "acl-deny", -1, 2)]
(ITEM,) = encode_window(ROWS, worker="fast-1", service="fast", window=WINDOW, sequence=4)
GOOD = {name: value for name, value in msgspec.structs.asdict(ITEM).items() if name in {"sk", "rows", *HEAD}}
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63 - 1, -(2**63), 2**31, 2**16, -1, 0]),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=30),
)


def row_of(item):
    """The first row that is read of an item; what cannot be built raises."""
    batch_of_rows(kinds_of(ITEMS), [readable(item)])
    return _CountReader(Store("t"), [WINDOW], COUNTS)._item(WINDOW, item).to_pylist()[0]


def set_aside(item):
    """The fault an item is set aside with, or None."""
    return row_of(item)["fault"]


@given(st.sampled_from(sorted(GOOD)), ANYTHING)
def test_an_item_with_anything_in_any_place_is_read_or_set_aside(name, value):
    item = GOOD | {name: value}
    known = readable(item)
    try:
        counts_of(item)
    except MalformedStats as fault:
        assert set_aside(item) == str(fault)
    else:
        assert set_aside(item) is None
        assert None not in known.values()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("row_count", 2**63 - 1),
        ("row_count", -1),
        ("row_count", MAX_ITEM_ROWS + 1),
        ("sequence", 2**63 - 1),
        ("sequence", -(2**63)),
        ("part", 1),
        ("parts", 0),
        ("digest", 2**32),
        ("worker", ""),
        ("service", "quick"),
        ("last", None),
    ],
)
def test_an_item_with_a_figure_out_of_range_is_set_aside(name, value):
    assert set_aside(GOOD) is None
    assert set_aside(GOOD | {name: value})


def rows_with(words, many):
    zeros = [0] * many
    columns = [words, zeros, zeros, zeros, zeros, zeros, [1] * many]
    return b"\x01" + zlib.compress(msgspec.msgpack.encode(columns))


@pytest.mark.parametrize(
    ("word", "many", "read"),
    [
        ("w" * MAX_WORD_LENGTH, MAX_ITEM_ROWS, True),
        ("w" * (MAX_WORD_LENGTH + 1), 1, False),
        ("w" * 50_000_000, 1, False),
        ("w", MAX_ITEM_ROWS + 1, False),
    ],
)
def test_a_small_item_that_would_take_much_memory_is_set_aside(word, many, read):
    rows = rows_with([word], many)
    assert len(rows) < 60_000
    assert (set_aside(GOOD | {"rows": rows, "row_count": many}) is None) == read


def test_rows_are_handed_on_as_soon_as_they_make_a_batch_however_many_items_follow():
    kinds, taken = kinds_of(COUNTS), []

    def items():
        for number in range(100):
            taken.append(number)
            yield batch_of_columns(kinds, 10_000, {"window": WINDOW})

    batches = merged(items())
    next(batches)
    assert len(taken) == 4
    assert sum(batch.num_rows for batch in batches) == 100 * 10_000 - 32_768
    assert list(merged([])) == []


def test_all_that_was_read_of_a_malformed_item_is_kept():
    kept = row_of(GOOD | {"row_count": 2**80, "last": None})
    assert kept["item"] == "fast-1#0"
    assert kept["raw"] == ITEM.rows
    head = {name: value for name, value in GOOD.items() if name in HEAD}
    assert json.loads(kept["head"]) == head | {"row_count": 2**80, "last": None}
    odd = row_of(GOOD | {"rows": "text"})
    assert (odd["raw"], json.loads(odd["head"])["rows"]) == (None, "text")
    assert row_of(GOOD)["head"] is None


def test_a_row_count_of_any_size_leaves_the_other_windows_readable(spark):
    rows = [(WINDOW, 3, f"w{i}", "fast", 0, 1, 5, False, 2**63 - 1, i) for i in range(2)]
    (found,) = fingerprints(spark.createDataFrame(rows, ITEMS)).collect()
    assert (found["items"], found["rows"]) == (2, 0)


@given(st.dictionaries(st.sampled_from(["N", "S", "B", "BOOL", "NULL", "L"]), ANYTHING, max_size=2))
def test_an_attribute_of_any_kind_has_a_plain_value(value):
    plain(value)


def test_a_plain_value_is_what_was_written():
    for value in (5, -7, 2**80, 1.5, "x", b"\x00", True, None):
        assert plain(typed({"a": value})["a"]) == value
