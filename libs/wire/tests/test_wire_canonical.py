"""Canonical JSON is RFC 8785: the numbers of its appendix, its sample, and an independent implementation agree."""

import json
import math
import struct

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from snavio.wire.canonical import NotCanonicalisableError, canonical, canonicalise

# RFC 8785, appendix B: IEEE 754 bits and what ECMAScript writes.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_numbers_are_written_as_ecmascript_writes_them(bits, text):
    assert canonical(struct.unpack(">d", bytes.fromhex(bits))[0]).decode() == text


def test_names_are_sorted_by_utf16_code_units():
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    order = list(json.loads(canonical(dict.fromkeys(names, 0))))
    assert order == ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_any_value_is_written_as_an_independent_implementation_writes_it(value):
    assert canonical(value) == rfc8785.dumps(value)


@given(json_values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_whoever_serialised_a_value_its_canonical_form_is_the_same(value, ensure_ascii, indent):
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
    assert canonicalise(text) == canonical(value)
    assert canonicalise(canonical(value)) == canonical(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        '"\\ud800"',
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "[" * 100_000 + "]" * 100_000,
        "9" * 400,
    ],
)
def test_what_has_no_canonical_form_is_refused(text):
    with pytest.raises(NotCanonicalisableError):
        canonicalise(text)


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1: 2}, b"bytes", "\ud800"])
def test_what_is_not_json_is_refused(value):
    with pytest.raises(NotCanonicalisableError):
        canonical(value)


def test_long_integers_are_the_doubles_everyone_else_takes_them_for():
    assert canonicalise("12345678901234567890") == b"12345678901234567000"
    assert canonicalise("1" + "0" * 30) == b"1e+30"
