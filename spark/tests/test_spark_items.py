"""What a worker wrote is read, or set aside: no item stops the reading of the others."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.spark.arrow import batch_of_rows, kinds_of
from snavio.spark.items import HEAD, counts_of, plain, readable
from snavio.spark.rollup import fingerprints
from snavio.spark.schemas import COUNTS, ITEMS
from snavio.spark.source import _CountReader
from snavio.spark.store import Store, typed
from snavio.wire.stats import MalformedStats, StatRow, encode_window

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


def set_aside(item):
    """The fault an item is set aside with, or None; what cannot be built raises."""
    batch_of_rows(kinds_of(ITEMS), [readable(item)])
    return _CountReader(Store("t"), [WINDOW], COUNTS)._item(WINDOW, item).column("fault")[0].as_py()


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
