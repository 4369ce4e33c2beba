"""KMS, for signing snapshots: the private half never leaves it, the public half is fetched once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from snavio.aws.boto.faults import translated

_ALGORITHM = "ECDSA_SHA_256"


class PublicKeys(Protocol):
    """Who knows the key that verifies."""

    async def public_key(self) -> bytes:
        """The public half, as DER."""
        ...


class Signer(PublicKeys, Protocol):
    """Who may sign as well."""

    async def sign(self, digest: bytes) -> bytes:
        """The signature of a SHA-256 digest, as DER."""
        ...


class KmsSigner:
    """`Signer` on an asymmetric KMS key. `client` opens raw aiobotocore clients by service."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], key_id: str) -> None:
        self._client = client
        self._key_id = key_id
        self._public: bytes | None = None

    async def public_key(self) -> bytes:
        """The public half, as DER."""
        if self._public is None:
            kms = await self._client("kms")
            with translated("GetPublicKey"):
                self._public = bytes((await kms.get_public_key(KeyId=self._key_id))["PublicKey"])
        return self._public

    async def sign(self, digest: bytes) -> bytes:
        """The signature of a SHA-256 digest, as DER."""
        kms = await self._client("kms")
        with translated("Sign"):
            answer = await kms.sign(
                KeyId=self._key_id, Message=digest, MessageType="DIGEST", SigningAlgorithm=_ALGORITHM
            )
        return bytes(answer["Signature"])
