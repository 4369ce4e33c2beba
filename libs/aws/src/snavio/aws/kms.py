"""The `Vault` port on KMS's JSON protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from snavio.aws.values import DataKey

if TYPE_CHECKING:
    from snavio.aws.call import Call


# msgspec reads bytes from base64 in JSON and takes botocore's as they are.
class _Generated(msgspec.Struct, rename="pascal"):
    plaintext: bytes
    ciphertext_blob: bytes


class _Decrypted(msgspec.Struct, rename="pascal"):
    plaintext: bytes


class KmsVault:
    """`Vault` over any client that carries KMS's operations."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def new_data_key(self, key_id: str, *, context: dict[str, str]) -> DataKey:
        """A fresh 256-bit data key under the named key."""
        parameters = {"KeyId": key_id, "KeySpec": "AES_256", "EncryptionContext": context}
        answer = await self._call("GenerateDataKey", parameters, _Generated)
        return DataKey(answer.plaintext, answer.ciphertext_blob)

    async def open_data_key(self, sealed: bytes, *, context: dict[str, str]) -> bytes:
        """The data key in the clear; `Permanent` when the seal or the context is wrong."""
        answer = await self._call(
            "Decrypt", {"CiphertextBlob": sealed, "EncryptionContext": context}, _Decrypted
        )
        return answer.plaintext
