"""AWS Signature Version 4 for one kind of request: POST of JSON to one host.

Only what differs from call to call is computed for each: two digests and one HMAC. The signing key changes once a day
and with the credentials, the date once a second, the rest never.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from _hashlib import HASH

_ALGORITHM = "AWS4-HMAC-SHA256"
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Keys(Protocol):
    """Credentials frozen at a moment."""

    access_key: str
    secret_key: str
    token: str | None


class Signer:
    """Writes the signed head of requests to one service at one endpoint."""

    def __init__(self, *, service: str, region: str, host: str, path: str, content_type: str) -> None:
        self._service = service
        self._region = region
        self._host = host
        self._path = quote(path, safe="/-_.~")
        self._content_type = content_type
        self._second = -1
        self._date = ""
        self._key_of = ("", "")
        self._inner = self._outer = sha256()

    def head(self, keys: Keys, *, target: str, body: bytes, now: float) -> bytes:
        """Everything of the request up to its body; `now` is seconds since the epoch."""
        if int(now) != self._second:
            self._second = int(now)
            self._date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._second))
        date = self._date
        day = date[:8]
        token, signed_token = "", ""
        names = "content-type;host;x-amz-date;x-amz-target"
        if keys.token:
            token = f"x-amz-security-token:{keys.token}\r\n"
            signed_token = f"x-amz-security-token:{keys.token}\n"
            names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
        canonical = (
            f"POST\n{self._path}\n\ncontent-type:{self._content_type}\nhost:{self._host}\nx-amz-date:{date}\n"
            f"{signed_token}x-amz-target:{target}\n\n{names}\n{sha256(body).hexdigest()}"
        )
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        to_sign = f"{_ALGORITHM}\n{date}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        if self._key_of != (keys.secret_key, day):
            self._key_of = (keys.secret_key, day)
            self._inner, self._outer = _keyed(self._signing_key(keys.secret_key, day))
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(to_sign.encode())
        outer.update(inner.digest())
        signature = outer.hexdigest()
        return (
            f"POST {self._path} HTTP/1.1\r\nhost:{self._host}\r\ncontent-type:{self._content_type}\r\n"
            f"x-amz-date:{date}\r\n{token}x-amz-target:{target}\r\n"
            f"authorization:{_ALGORITHM} Credential={keys.access_key}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}\r\nuser-agent:snavio\r\ncontent-length:{len(body)}\r\n\r\n"
        ).encode()

    def _signing_key(self, secret: str, day: str) -> bytes:
        key = f"AWS4{secret}".encode()
        for part in (day, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key


def _keyed(key: bytes) -> tuple[HASH, HASH]:
    """The two halves of an HMAC with its 32-byte key already taken in: copying them is half the cost of an HMAC."""
    block = key.ljust(sha256().block_size, b"\0")
    return sha256(block.translate(_INNER)), sha256(block.translate(_OUTER))
