"""Values survive DynamoDB, and what it cannot keep is refused."""

from __future__ import annotations

import base64
import enum

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws.attributes import decode, decode_item, encode, encode_item
from snavio.aws.errors import Permanent
from snavio.aws.limits import item_bytes

integers = st.integers(-(10**38) + 1, 10**38 - 1)
# Whole floats come back as ints equal to them; beyond 2**53 a float is kept by its shortest form.
floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: x == 0 or 1e-130 <= abs(x) <= 9.99e125
)
scalars = st.one_of(st.text(max_size=8), integers, floats, st.booleans(), st.binary(max_size=8), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def _types(value):
    if isinstance(value, list):
        return [_types(element) for element in value]
    if isinstance(value, dict):
        return {name: _types(element) for name, element in value.items()}
    return int if type(value) is float and value.is_integer() and abs(value) < 2**53 else type(value)


@given(values)
def test_a_value_comes_back_equal_and_of_its_type(value):
    found = decode(encode(value))
    assert found == value
    assert _types(found) == _types(value)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_an_item_survives_json_where_bytes_are_base64(item):
    wire = msgspec.json.decode(msgspec.json.encode(encode_item(item)))
    assert decode_item(wire) == item


def test_a_subclass_is_kept_as_what_it_derives_from():
    colour = enum.StrEnum("colour", "RED")
    assert encode(colour.RED) == {"S": "red"}
    assert type(encode(colour.RED)["S"]) is str


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ({"SS": ["a"]}, ["a"]),
        ({"NS": ["1", "2.5"]}, [1, 2.5]),
        ({"BS": [base64.b64encode(b"x").decode()]}, [b"x"]),
        ({"N": "1E+2"}, 100),
        ({"N": "1" + "0" * 60}, 1e60),
    ],
)
def test_what_others_wrote_can_be_read(attribute, value):
    assert decode(attribute) == value


@pytest.mark.parametrize(
    "value", [10**38, -(10**38), float("nan"), float("inf"), 1e-131, 1e126, {1}, object()]
)
def test_what_dynamodb_cannot_keep_is_refused(value):
    with pytest.raises(Permanent):
        encode(value)


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({"ab": "cd"}, 4),
        ({"ü": "ü"}, 4),
        ({"a": b"123"}, 4),
        ({"a": None}, 2),
        ({"a": True}, 2),
        ({"a": ["b", "c"]}, 1 + 3 + 2 + 2),
        ({"a": {"b": "c"}}, 1 + 3 + 1 + 2),
    ],
)
def test_an_item_is_measured_as_dynamodb_measures_it(item, size):
    assert item_bytes(item) == size
