"""The signed pointer to a snapshot: small, checked before anything it points to is read. Pure.

A pointer is signed with an asymmetric KMS key (ECDSA on P-256 with SHA-256); its public half verifies it without a call.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from snavio.domain.freshness import Ttl
from snavio.registry.snapshot_parts import Kind

FOLDER = "snavio/registry"
MAX_POINTER_BYTES = 65_536
_FRAME = b"SNAVIO-SNAPSHOT1\n"

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}\\Z")]
Size = Annotated[int, msgspec.Meta(ge=0)]


class PartRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part: its digest is its name."""

    sha256: Digest
    size_bytes: Size
    raw_bytes: Size
    entries: Size


class Retired(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part no longer pointed to, kept a while for who has read an older pointer."""

    kind: Kind
    sha256: Digest
    since: float


class Pointer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `latest.json` says, without its signature."""

    kind: Kind
    version_id: str
    number: Annotated[int, msgspec.Meta(ge=1)]
    """Rises with every publication: an older pointer put back is known by it."""
    seq: Size
    """The last change of the registry that is in the snapshot."""
    generated_at: float
    ttl_policy: dict[str, Ttl]
    parts: dict[Kind, PartRef]
    retired: list[Retired] = []


class Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pointer as it is stored."""

    pointer: Pointer
    signature: bytes


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Signed).decode


class PointerError(ValueError):
    """Bytes that are not a pointer, or one the platform has not signed."""


def pointer_key(kind: Kind) -> str:
    """Where a pointer lies in the bucket."""
    return f"{FOLDER}/{kind}/latest.json"


def part_key(kind: Kind, sha256: str) -> str:
    """Where a part lies in the bucket."""
    return f"{FOLDER}/{kind}/{sha256}"


def digest_of(pointer: Pointer) -> bytes:
    """What is signed."""
    return hashlib.sha256(_FRAME + _encode(pointer)).digest()


def encode_pointer(pointer: Pointer, signature: bytes) -> bytes:
    """The bytes of `latest.json`."""
    fields = msgspec.json.decode(_encode(pointer), type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**fields, "signature": signature})


def decode_pointer(body: bytes) -> Signed:
    """The pointer in `latest.json`, its signature not yet verified. Raises `PointerError`."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        signature = fields.pop("signature", msgspec.Raw(b'""'))
        return _decode(msgspec.json.encode({"pointer": fields, "signature": signature}))
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise PointerError(f"the pointer cannot be read: {problem}") from None


def public_key_of(der: bytes) -> ec.EllipticCurvePublicKey:
    """The key in these bytes. Raises `PointerError` when it is not one of the right kind."""
    try:
        key = load_der_public_key(der)
    except ValueError as problem:
        raise PointerError(f"the public key cannot be read: {problem}") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise PointerError("the public key is not one on P-256")
    return key


def is_genuine(signed: Signed, key: ec.EllipticCurvePublicKey) -> bool:
    """Whether the platform signed it."""
    try:
        key.verify(signed.signature, digest_of(signed.pointer), ec.ECDSA(Prehashed(SHA256())))
    except InvalidSignature:
        return False
    return True
