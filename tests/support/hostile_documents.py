"""Strategies for what no decoder should be surprised by: bytes, texts and values from hostile hands."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

_DEEP = 2000
_BAD_TEXTS = [
    "", " ", "null", "NaN", "-", "1e999", "9" * 5000, '"\\ud800"', "\ud800", "\ufeff{}", "\x00", "{}", "[]", '""',
    "[" * _DEEP, '{"a":' * _DEEP, '{"x":' + "[" * _DEEP, '{"a":1,"a":2}', "{" + '"a":0,' * 1000,
]  # fmt: skip
_BAD_BYTES = [
    b"\xff\xfe",
    b"\xc3\x28",
    b'{"a":"\xff"}',
    b"\x91" * _DEEP,
    b"\xdd\xff\xff\xff\xff",
    b"\x81\xa1\xff\x00",
]

LARGE_TEXTS = [
    "[" * 1_000_000,
    '{"a":' * 200_000,
    '"' + "x" * 1_000_000 + '"',
    "9" * 1_000_000,
    '{"x":' + "[" * 500_000,
]
"""Too large to be shown, so not generated."""

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["", "\ufffe", "x" * 3000, "2027-01-15T08:00:00Z", "1" * 5000])
)


def values(names: list[str]) -> st.SearchStrategy[Any]:
    """JSON values whose objects use these names among others."""
    keys = st.sampled_from(names) | st.text(max_size=4)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=20,
    )


def texts(names: list[str], valid: list[str]) -> st.SearchStrategy[str]:
    """JSON and almost JSON: generated, listed, and valid documents with a part replaced."""
    return st.one_of(
        st.sampled_from(_BAD_TEXTS),
        values(names).map(json.dumps),
        st.text(max_size=40),
        st.builds(
            _replaced,
            st.sampled_from(valid or ["{}"]),
            st.integers(0, 400),
            st.integers(0, 9),
            st.sampled_from(_BAD_TEXTS[:16]),
        ),
    )


def blobs(names: list[str], valid: list[bytes]) -> st.SearchStrategy[bytes]:
    """The same as bytes, with what is no UTF-8 at all."""
    return st.one_of(
        st.sampled_from(_BAD_BYTES),
        st.binary(max_size=60),
        texts(names, []).map(lambda text: text.encode(errors="surrogatepass")),
        st.builds(
            _replaced,
            st.sampled_from(valid or [b"{}"]),
            st.integers(0, 400),
            st.integers(0, 9),
            st.sampled_from(_BAD_BYTES) | st.binary(max_size=4),
        ),
    )


def _replaced(document: Any, at: int, length: int, part: Any) -> Any:
    at %= len(document) + 1
    return document[:at] + part + document[at + length :]
