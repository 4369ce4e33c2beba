"""The secret that signs the gateway's tokens, and the administrator's token."""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from pathlib import Path

import msgspec

_SECRET_BYTES = 32


def signing_secret(path: Path) -> bytes:
    """The secret in the file, made when there is none; only its owner can read it."""
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(made, "wb") as file:
        secret = secrets.token_hex(_SECRET_BYTES).encode()
        file.write(secret)
        return secret


def admin_token(secret: bytes, *, now: float, lifetime_seconds: float = 30 * 86_400) -> str:
    """A JSON Web Token, HS256, that gives its bearer the role Admin."""
    claims = {"sub": "snavio-up", "roles": ["Admin"], "iat": int(now), "exp": int(now + lifetime_seconds)}
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
    return f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _part(value: object) -> str:
    return _encoded(msgspec.json.encode(value))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
