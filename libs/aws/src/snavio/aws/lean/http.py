"""Reading HTTP/1.1 responses: bytes in, responses out, no sockets."""

from __future__ import annotations

import re

import msgspec

_STATUS = re.compile(rb"http/1\.([01]) ([1-5][0-9][0-9])(?: |\r\n)")
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")

_MAX_HEAD = 65_536
# Ten messages of a mebibyte each, every character escaped.
MAX_BODY = 64 * 1_048_576

# Lengths of a body that its head does not tell.
_CHUNKED = -1
_UNTIL_CLOSE = -2

_OK = 200
_NO_CONTENT = 204
_NOT_MODIFIED = 304


class Response(msgspec.Struct, frozen=True, gc=False):
    """A whole response. With `keep_alive` its connection may carry another request."""

    status: int
    body: bytes
    keep_alive: bool


class Malformed(Exception):  # noqa: N818 - says what the bytes are
    """The peer does not speak HTTP as we know it; its connection is of no more use."""


class ResponseReader:
    """Reads one response at a time from the bytes of a connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head_end = -1
        self._status = 0
        self._keep_alive = True
        self._length = 0
        self._chunks: list[bytes] = []
        self._at = 0

    @property
    def has_begun(self) -> bool:
        """Whether part of a response has come."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> Response | None:
        """The response, once its last byte is in. Bytes beyond it make the connection unfit for another."""
        if not self._buffer:
            whole = _whole(data)
            if whole is not None:
                return whole
        self._buffer += data
        if self._head_end < 0 and not self._read_head():
            return None
        if self._length == _CHUNKED:
            return self._read_chunks()
        if self._length == _UNTIL_CLOSE:
            _check_size(len(self._buffer) - self._head_end)
            return None
        end = self._head_end + self._length
        if len(self._buffer) < end:
            return None
        return self._finish(bytes(memoryview(self._buffer)[self._head_end : end]), end)

    def feed_eof(self) -> Response | None:
        """The response that ends with its connection, if that is what was coming."""
        if self._head_end >= 0 and self._length == _UNTIL_CLOSE:
            self._keep_alive = False
            return self._finish(bytes(self._buffer[self._head_end :]), len(self._buffer))
        return None

    def _read_head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    raise Malformed("A response with an endless head.")
                return False
            self._status, self._keep_alive, self._length = _parse_head(bytes(self._buffer[: end + 4]))
            if self._status >= _OK:
                self._head_end = self._at = end + 4
                return True
            # An interim response: the real one follows.
            del self._buffer[: end + 4]

    def _read_chunks(self) -> Response | None:
        while True:
            line_end = self._buffer.find(b"\r\n", self._at)
            if line_end < 0:
                _check_size(len(self._buffer))
                return None
            size_text = _CHUNK_SIZE.match(self._buffer, self._at, line_end)
            if size_text is None:
                raise Malformed("A chunk without a size.")
            size = int(size_text[0], 16)
            _check_size(self._at + size)
            start = line_end + 2
            if size == 0:
                return self._read_trailers(line_end)
            if len(self._buffer) < start + size + 2:
                return None
            self._chunks.append(bytes(self._buffer[start : start + size]))
            if not self._buffer.startswith(b"\r\n", start + size):
                raise Malformed("A chunk longer than its size.")
            self._at = start + size + 2

    def _read_trailers(self, line_end: int) -> Response | None:
        """Trailers, of which we need none, follow the last chunk's line and end with an empty one."""
        end = self._buffer.find(b"\r\n\r\n", line_end)
        return None if end < 0 else self._finish(b"".join(self._chunks), end + 4)

    def _finish(self, body: bytes, end: int) -> Response:
        # Bytes nobody asked for: what follows could be taken for the answer to the next request.
        keep_alive = self._keep_alive and len(self._buffer) == end
        response = Response(self._status, body, keep_alive)
        self._buffer.clear()
        self._chunks.clear()
        self._head_end = -1
        return response


def _whole(data: bytes) -> Response | None:
    """The response that came in one piece, as nearly all do."""
    end = data.find(b"\r\n\r\n") + 4
    if end < 4:  # noqa: PLR2004 - not found
        return None
    status, keep_alive, length = _parse_head(data[:end])
    if status < _OK or length < 0 or len(data) < end + length:
        return None
    return Response(status, data[end : end + length], keep_alive and len(data) == end + length)


def _parse_head(head: bytes) -> tuple[int, bool, int]:
    """The status, whether the connection may be kept, and the length of the body."""
    head = head.lower()
    line = _STATUS.match(head)
    if line is None:
        raise Malformed("Not a response of HTTP/1.")
    status = int(line[2])
    connection = _header(head, b"\r\nconnection:")
    keep_alive = b"close" not in connection and (line[1] == b"1" or b"keep-alive" in connection)
    if status < _OK or status in {_NO_CONTENT, _NOT_MODIFIED}:
        return status, keep_alive, 0
    if b"chunked" in _header(head, b"\r\ntransfer-encoding:"):
        return status, keep_alive, _CHUNKED
    length = _header(head, b"\r\ncontent-length:")
    if not length:
        return status, keep_alive, _UNTIL_CLOSE
    if not length.isdigit() or head.count(b"\r\ncontent-length:") > 1:
        raise Malformed("A response of uncertain length.")
    _check_size(int(length))
    return status, keep_alive, int(length)


def _check_size(size: int) -> None:
    if size > MAX_BODY:
        raise Malformed(f"A response of {size} bytes or more.")


def _header(head: bytes, name: bytes) -> bytes:
    """The value of a header in a lower-cased head, empty when absent."""
    start = head.find(name)
    return b"" if start < 0 else head[start + len(name) : head.find(b"\r\n", start + 2)].strip()
