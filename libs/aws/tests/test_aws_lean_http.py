"""Responses are read the same however the network cuts them up, and what is no response is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws.lean.http import Malformed, Response, ResponseReader

RESPONSES = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Response(200, b"hello", keep_alive=True)),
    (b"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", Response(200, b"", keep_alive=True)),
    (
        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nCONTENT-LENGTH:  2 \r\n\r\n{}",
        Response(400, b"{}", keep_alive=False),
    ),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", Response(200, b"hi", keep_alive=False)),
    (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi",
        Response(200, b"hi", keep_alive=True),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\n\r\n",
        Response(200, b"abc0123456789", keep_alive=True),
    ),
    (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\n\r\n\r\n0\r\nx-trailer: y\r\nz: 1\r\n\r\n",
        Response(200, b"\r\n", keep_alive=True),
    ),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nx: y\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 1\r\n\r\n!",
        Response(503, b"!", keep_alive=True),
    ),
    (b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", Response(204, b"", keep_alive=True)),
]


@given(st.sampled_from(RESPONSES), st.data())
def test_a_response_is_read_the_same_however_it_is_cut(case, data):
    raw, expected = case
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    reader = ResponseReader()
    answers = [reader.feed(piece) for piece in pieces]
    assert answers == [None] * (len(pieces) - 1) + [expected]
    # The reader is ready for the next response on the same connection.
    assert reader.feed(RESPONSES[0][0]) == RESPONSES[0][1]


def test_a_body_without_a_length_ends_with_its_connection():
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nall of") is None
    assert reader.feed(b" it") is None
    assert reader.feed_eof() == Response(200, b"all of it", keep_alive=False)


@pytest.mark.parametrize(
    "cut",
    [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", RESPONSES[5][0][:-2]],
)
def test_a_response_cut_short_is_no_response(cut):
    reader = ResponseReader()
    assert reader.feed(cut) is None
    assert reader.feed_eof() is None


def test_bytes_beyond_a_response_spoil_its_connection():
    response = ResponseReader().feed(RESPONSES[0][0] + b"HTTP/1.1 200 OK\r\n")
    assert response == Response(200, b"hello", keep_alive=False)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"x" * 70_000,
    ],
    ids=lambda raw: raw[:60].decode(),
)
def test_what_is_no_response_is_refused(raw):
    with pytest.raises(Malformed):
        ResponseReader().feed(raw)


@given(st.binary(max_size=200))
def test_no_bytes_whatever_break_the_reader(noise):
    reader = ResponseReader()
    for start in (b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        try:
            reader.feed(start + noise)
            reader.feed_eof()
        except Malformed:
            return
