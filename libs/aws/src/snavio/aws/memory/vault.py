"""The `Vault` port in memory: it keeps the rules of sealing and nothing secret."""

from __future__ import annotations

import hashlib

import msgspec
from anyio.lowlevel import checkpoint

from snavio.aws.errors import NotFound, Permanent
from snavio.aws.values import DataKey


class _Seal(msgspec.Struct, frozen=True):
    key_id: str
    context: dict[str, str]
    plaintext: bytes
    check: bytes


class MemoryVault:
    """`Vault` in memory, for the keys it was given; its data keys are a numbered series."""

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)
        self.issued = 0

    async def new_data_key(self, key_id: str, *, context: dict[str, str]) -> DataKey:
        """A fresh 256-bit data key under the named key."""
        await checkpoint()
        if key_id not in self.keys:
            raise NotFound(f"There is no key {key_id}.", code="NotFoundException")
        self.issued += 1
        plaintext = hashlib.sha256(f"{key_id}/{self.issued}".encode()).digest()
        seal = _Seal(key_id, dict(context), plaintext, hashlib.sha256(plaintext).digest())
        return DataKey(plaintext, msgspec.msgpack.encode(seal))

    async def open_data_key(self, sealed: bytes, *, context: dict[str, str]) -> bytes:
        """The data key in the clear; `Permanent` when the seal or the context is wrong."""
        await checkpoint()
        try:
            seal = msgspec.msgpack.decode(sealed, type=_Seal)
        except msgspec.MsgspecError:
            raise Permanent("That is no seal of this vault.", code="InvalidCiphertextException") from None
        broken = hashlib.sha256(seal.plaintext).digest() != seal.check
        if broken or seal.context != context or seal.key_id not in self.keys:
            raise Permanent("The seal is broken or its context another.", code="InvalidCiphertextException")
        return seal.plaintext
