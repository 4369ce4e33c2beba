"""Publishing snapshots: parts first, then the pointers, each step safe to be the last.

The pointer of `snapshot` names all three parts and decides; it is replaced only if nobody replaced it since it was read,
so a publisher that lost its lead without knowing cannot overwrite its successor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio.to_thread
import msgspec

from snavio.aws.errors import ConditionFailed, NotFound
from snavio.aws.ports import Objects, Tables
from snavio.aws.values import Absent, AnyOf, Below, Change
from snavio.domain.freshness import Ttl, TtlPolicy
from snavio.registry.snapshot_parts import Kind, Packed, pack_all
from snavio.registry.snapshot_pointer import (
    PartRef,
    Pointer,
    PointerError,
    Retired,
    decode_pointer,
    digest_of,
    encode_pointer,
    is_genuine,
    part_key,
    pointer_key,
    public_key_of,
)
from snavio.registry.snapshot_signing import Signer
from snavio.registry.snapshots import PUBLISHED
from snavio.registry.view import Registry
from snavio.wire.names import Names


class Published(msgspec.Struct, frozen=True, tag=True):
    """Readers see it."""

    pointer: Pointer


class TooLarge(msgspec.Struct, frozen=True, tag=True):
    """Nothing was published: a part exceeds the cap."""

    kind: Kind
    size_bytes: int
    limit_bytes: int


class Superseded(msgspec.Struct, frozen=True, tag=True):
    """Somebody else published meanwhile."""


Publication: TypeAlias = Published | TooLarge | Superseded


class SnapshotPublisher:
    """Publishes the registry it is given. What has not changed since the last time is not uploaded again."""

    def __init__(
        self,
        objects: Objects,
        tables: Tables,
        names: Names,
        signer: Signer,
        *,
        ttls: TtlPolicy,
        max_bytes: int,
        keep_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._objects = objects
        self._tables = tables
        self._names = names
        self._signer = signer
        self._ttls = ttls
        self._max_bytes = max_bytes
        self._keep = keep_seconds
        self._clock = clock
        self._packed: tuple[int, dict[Kind, PartRef]] | None = None
        self._uploaded: set[str] = set()

    async def publish(self, registry: Registry) -> Publication:
        """Publish what the registry holds now, which nobody may change meanwhile.

        Raises what S3, KMS or DynamoDB raise; readers are none the worse.
        """
        now = self._clock()
        seq = registry.seq
        if self._packed is None or self._packed[0] != seq:
            packed = await anyio.to_thread.run_sync(pack_all, registry)
            for part in packed:
                if len(part.body) > self._max_bytes:
                    return TooLarge(part.kind, len(part.body), self._max_bytes)
            for part in packed:
                await self._upload(part)
            self._packed = seq, {part.kind: _ref(part) for part in packed}
        parts = self._packed[1]
        standing, etag = await self._standing()
        number = max(standing.number if standing else 0, await self._last_number()) + 1
        pointer = Pointer(
            kind=Kind.ROUTING,
            version_id=f"{number}-{seq}",
            number=number,
            seq=seq,
            generated_at=now,
            ttl_policy=self._ttl_policy(),
            parts=parts,
            retired=await self._retire(standing, parts, now),
        )
        try:
            await self._put(pointer, etag)
            for kind in (Kind.ACL, Kind.HMAC):
                await self._put_single(pointer, kind)
            await self._record(pointer)
        except ConditionFailed:
            return Superseded()
        return Published(pointer)

    async def _upload(self, part: Packed) -> None:
        key = part_key(part.kind, part.sha256)
        if key in self._uploaded:
            return
        # Unconditionally, once a process: an object of this name that holds anything else is made good.
        await self._objects.put(self._names.bucket, key, part.body)
        self._uploaded.add(key)

    async def _standing(self) -> tuple[Pointer | None, str | None]:
        """The pointer there is, None where it is not to be believed, and its tag."""
        try:
            stored = await self._objects.get(self._names.bucket, pointer_key(Kind.ROUTING))
        except NotFound:
            return None, None
        try:
            signed = decode_pointer(stored.body)
            genuine = is_genuine(signed, public_key_of(await self._signer.public_key()))
        except PointerError:
            genuine, signed = False, None
        return (signed.pointer if signed and genuine else None), stored.etag

    async def _last_number(self) -> int:
        published = await self._tables.get(self._names.changelog, PUBLISHED)
        number = published.get("number") if published else None
        return number if isinstance(number, int) else 0

    async def _put(self, pointer: Pointer, etag: str | None) -> None:
        body = encode_pointer(pointer, await self._signer.sign(digest_of(pointer)))
        await self._objects.put(
            self._names.bucket, pointer_key(pointer.kind), body, if_match=etag, if_absent=etag is None
        )

    async def _put_single(self, decisive: Pointer, kind: Kind) -> None:
        """The pointer of one part, for who needs no other."""
        pointer = msgspec.structs.replace(decisive, kind=kind, parts={kind: decisive.parts[kind]}, retired=[])
        try:
            etag = (await self._objects.get(self._names.bucket, pointer_key(kind))).etag
        except NotFound:
            etag = None
        await self._put(pointer, etag)

    async def _record(self, pointer: Pointer) -> None:
        """Let readers know how far publication has come, so that nobody can put an older pointer back."""
        older = AnyOf((Absent("number"), Below("number", pointer.number)))
        change = Change(assign={"number": pointer.number, "version_id": pointer.version_id})
        await self._tables.update(self._names.changelog, PUBLISHED, change, condition=older)

    async def _retire(
        self, standing: Pointer | None, parts: dict[Kind, PartRef], now: float
    ) -> list[Retired]:
        """What the pointers before this one named: removed once nobody can be reading it any more."""
        if standing is None:
            return []
        current = {(kind, ref.sha256) for kind, ref in parts.items()}
        known = {(old.kind, old.sha256): old for old in standing.retired}
        for kind, ref in standing.parts.items():
            known.setdefault((kind, ref.sha256), Retired(kind, ref.sha256, now))
        kept: list[Retired] = []
        for name, old in known.items():
            if name in current:
                continue
            if now - old.since < self._keep:
                kept.append(old)
            else:
                await self._objects.delete(self._names.bucket, part_key(old.kind, old.sha256))
                self._uploaded.discard(part_key(old.kind, old.sha256))
        return kept

    def _ttl_policy(self) -> dict[str, Ttl]:
        return {field: getattr(self._ttls, field) for field in TtlPolicy.__struct_fields__}


def _ref(part: Packed) -> PartRef:
    return PartRef(part.sha256, len(part.body), part.raw_bytes, part.entries)
