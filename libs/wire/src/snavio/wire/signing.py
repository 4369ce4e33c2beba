"""The signature of a command: HMAC-SHA256 over seven framed parts.

Each part before the payload is checked against a pattern without line feeds, so no two commands frame alike.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TypeAlias

import msgspec

from snavio.wire.canonical import canonicalise
from snavio.wire.names import COMMAND_PATTERN, NAME_PATTERN
from snavio.wire.times import TIME_PATTERN

Buffer: TypeAlias = bytes | msgspec.Raw

_BLOCK = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


def framed(version_id: str, command_id: str, timestamp: str, target: str, name: str) -> bytes:
    """Everything that is signed except the payload, which follows directly."""
    return f"SNAVIO1\n{version_id}\n{command_id}\n{timestamp}\n{target}\n{name}\n".encode()


def framed_replay(source: str, frame: bytes) -> bytes:
    """The frame of a replayed command. The platform's key speaks for every source, so the source is signed too."""
    return f"SNAVIO1-REPLAY\n{source}\n".encode() + frame


UUID_PATTERN = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

_FRAME_PATTERN = rf"SNAVIO1\n[^\n]*+\n{UUID_PATTERN}\n{TIME_PATTERN}\n{NAME_PATTERN}\n{COMMAND_PATTERN}\n"
# No repeat of it can gain by giving back what it has matched; told so, the match costs a fifth less.
is_framed = re.compile(_FRAME_PATTERN.replace("}", "}+").encode()).fullmatch
"""Whether each part of a frame has its form: one match, where part by part it would be four."""


class SigningKey:
    """A secret with its two HMAC states computed once, so that a signature costs two copies and two updates."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        block = (hashlib.sha256(secret).digest() if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def __repr__(self) -> str:
        return "SigningKey(…)"

    def sign(self, frame: bytes, payload: Buffer) -> str:
        """The signature, in lower-case hex, of a frame and a canonical payload."""
        inner = self._inner.copy()
        inner.update(frame)
        inner.update(payload)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.hexdigest()

    def verify(self, signature: str, frame: bytes, payload: Buffer) -> bool:
        """Whether the signature is right for the payload as it arrived, or else for its canonical form.

        Raises `NotCanonicalisableError` when the bytes as they arrived do not match and have no canonical form.
        """
        if not signature.isascii():
            return False
        if hmac.compare_digest(signature, self.sign(frame, payload)):
            return True
        return hmac.compare_digest(signature, self.sign(frame, canonicalise(bytes(payload))))
