"""What is let through without being measured is what measuring would let through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws import limits
from snavio.aws.errors import Permanent
from snavio.aws.values import Outgoing

ODD = [
    "",
    "\x00",
    "\x08",
    "\x0c",
    "\x1f",
    "\x7f",
    "\ufffe",
    "\uffff",
    "\ud800",
    "é",
    "😀",
    "\\b",
    "\\u00",
    '"',
    "\n",
]
texts = st.lists(st.sampled_from(ODD) | st.text(max_size=5), max_size=4).map("".join)
messages = st.builds(
    Outgoing,
    body=texts,
    group=st.none() | st.sampled_from(["acme", "", "with space", "é"]),
    attributes=st.dictionaries(
        st.sampled_from(["snavio.id", "traceparent", "aws.x", ".x", ""]), texts, max_size=3
    ),
    delay_seconds=st.sampled_from([0, 0, 0, 1, 901, -1]),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(texts, inner, max_size=9),
    max_leaves=40,
)


@given(st.lists(messages, max_size=10))
def test_plain_is_what_measuring_finds_nothing_against(batch):
    sizes = [limits.measure(message) for message in batch]
    sound = all(isinstance(size, int) for size in sizes) and not any(one.delay_seconds for one in batch)
    assert limits.are_plain(batch) == sound


@pytest.mark.parametrize(
    "message",
    [
        Outgoing('{"text":"Grüße"}', "acme", {"snavio.id": "1", "traceparent": "00-1-2-01"}),
        Outgoing('{"text":"two\\\\nlines"}'),
    ],
)
def test_an_ordinary_message_is_plain(message):
    assert limits.are_plain([message])


def test_messages_that_exceed_one_batch_together_are_measured():
    names = {"a": "é"}
    most = Outgoing(
        "x" * (limits.MAX_MESSAGE_BYTES - limits.measure(Outgoing("x", None, names)) + 1), None, names
    )
    assert limits.measure(most) == limits.MAX_MESSAGE_BYTES
    assert limits.are_plain([most])
    assert not limits.are_plain([most, Outgoing("x")])


@given(values)
def test_twice_its_json_is_more_than_dynamodb_counts_of_an_item(value):
    item = {"a": value}
    try:
        written, size = len(limits._written(item)), limits.item_bytes(item)
    except (Permanent, UnicodeEncodeError):
        return
    assert size <= 2 * written


def test_a_batch_with_one_item_too_large_is_refused():
    fits = {"pk": "x" * 100_000}
    limits.require_items([fits] * 3)
    with pytest.raises(Permanent, match="409600"):
        limits.require_items([fits, {"pk": "x" * limits.MAX_ITEM_BYTES}])
