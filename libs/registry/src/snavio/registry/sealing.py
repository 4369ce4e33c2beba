"""Secrets at rest: AES-256-GCM under data keys that KMS seals, bound to the source and version they belong to."""

from __future__ import annotations

import os
import uuid

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Vault
from snavio.registry.rows import SealKey

_NONCE_BYTES = 12
_ID_BYTES = 16
_CONTEXT = {"purpose": "snavio-hmac-secrets"}


class UnsealError(SnavioError):
    """A secret could not be opened: an unknown data key, damage, or a secret moved to another source."""


class Sealer:
    """Seals and opens secrets locally once the data keys are open: one KMS call a data key, not one a secret."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._ciphers: dict[str, AESGCM] = {}

    def has(self, seal_id: str) -> bool:
        """Whether this data key is open."""
        return seal_id in self._ciphers

    async def open(self, seal: SealKey) -> None:
        """Open a data key, unless it is open already."""
        if seal.id not in self._ciphers:
            self._ciphers[seal.id] = AESGCM(await self._vault.open_data_key(seal.sealed, context=_CONTEXT))

    async def new_key(self, key_id: str, now: float) -> SealKey:
        """A new data key, open at once."""
        data_key = await self._vault.new_data_key(key_id, context=_CONTEXT)
        seal = SealKey(id=uuid.uuid4().hex, sealed=data_key.sealed, created_at=now)
        self._ciphers[seal.id] = AESGCM(data_key.plaintext)
        return seal

    def seal(self, secret: bytes, *, seal_id: str, source: str, version_id: str) -> bytes:
        """A secret as it is kept."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[seal_id].encrypt(nonce, secret, _bound_to(source, version_id))
        return bytes.fromhex(seal_id) + nonce + sealed

    def unseal(self, sealed: bytes, *, source: str, version_id: str) -> bytes:
        """The secret in the clear. Raises `UnsealError`."""
        cipher = self._ciphers.get(sealed[:_ID_BYTES].hex())
        if cipher is None:
            raise UnsealError(f"the data key of {source} {version_id} is not open")
        nonce = sealed[_ID_BYTES : _ID_BYTES + _NONCE_BYTES]
        try:
            return cipher.decrypt(nonce, sealed[_ID_BYTES + _NONCE_BYTES :], _bound_to(source, version_id))
        except (InvalidTag, ValueError):
            raise UnsealError(f"the secret of {source} {version_id} is damaged or was moved") from None


def _bound_to(source: str, version_id: str) -> bytes:
    return f"{source}\n{version_id}".encode()
