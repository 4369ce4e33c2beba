"""Reading snapshots: a cold start without reading every row of the table.

Nothing is believed for lying in the bucket. The pointer's signature, age and number are checked, then the size of each
part, then its digest, and only then is it parsed. Whatever is wrong, the registry is left empty and the table is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import anyio
import msgspec

from snavio.aws.errors import NotFound, Permanent, SnavioError
from snavio.aws.ports import Objects, Tables
from snavio.registry.snapshot_parts import GrantColumns, HmacRows, Kind, PartError, RoutingRows, fill, unpack
from snavio.registry.snapshot_pointer import (
    MAX_POINTER_BYTES,
    PartRef,
    Pointer,
    PointerError,
    decode_pointer,
    is_genuine,
    part_key,
    pointer_key,
    public_key_of,
)
from snavio.registry.snapshot_signing import PublicKeys
from snavio.registry.store import RegistryStore
from snavio.registry.view import Registry
from snavio.wire.names import Names

PUBLISHED: dict[str, str | int | bytes] = {"pk": "snapshot", "seq": 0}
"""Where the changelog's table says which snapshot was published last."""


class Refusal(StrEnum):
    """Why a snapshot was not used."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    BAD_SIGNATURE = "bad-signature"
    STALE = "stale"
    ROLLED_BACK = "rolled-back"
    AHEAD_OF_LOG = "ahead-of-log"
    LOG_GAP = "log-gap"
    TOO_LARGE = "too-large"
    TRUNCATED = "truncated"
    TAMPERED = "tampered"
    UNAVAILABLE = "unavailable"


class RefusedError(SnavioError):
    """A snapshot that must not be used."""

    def __init__(self, reason: Refusal, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.kind = kind


class SnapshotPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader accepts."""

    max_age_seconds: float = 300.0
    max_skew_seconds: float = 60.0
    """How far the publisher's clock may be ahead."""
    max_bytes: int = 64 * 1024 * 1024
    """Of each part as it is stored."""
    max_inflation: int = 16
    """How many times larger it may become."""


class SnapshotObserver(Protocol):
    """Who is told what became of a snapshot."""

    def snapshot_loaded(self, pointer: Pointer) -> None:
        """It was used."""
        ...

    def snapshot_refused(self, kind: str, reason: str, detail: str) -> None:
        """It was not, and the table is read instead."""
        ...


class SnapshotReader:
    """The `Snapshots` of a `Keeper`. The key part is read only for a registry that keeps keys."""

    def __init__(
        self,
        objects: Objects,
        tables: Tables,
        names: Names,
        keys: PublicKeys,
        policy: SnapshotPolicy,
        *,
        clock: Callable[[], float],
        observer: SnapshotObserver,
    ) -> None:
        self._objects = objects
        self._tables = tables
        self._names = names
        self._keys = keys
        self._policy = policy
        self._clock = clock
        self._observer = observer
        self._store = RegistryStore(tables, names, clock=clock)

    async def load_into(self, registry: Registry) -> bool:
        """Fill an empty registry; False, with the registry still empty, when no snapshot is fit for use."""
        kinds = [kind for kind in Kind if kind is not Kind.HMAC or registry.keeps_keys]
        try:
            # Before the pointer: what is published while it is read makes it no older than it was.
            latest = await self._latest_number()
            pointer = await self.pointer()
            await self._check_log(pointer, latest)
            parts = await self._parts(pointer, kinds)
        except RefusedError as refused:
            self._observer.snapshot_refused(refused.kind, refused.reason, str(refused))
            return False
        except SnavioError as error:
            self._observer.snapshot_refused(Kind.ROUTING, Refusal.UNAVAILABLE, str(error))
            return False
        fill(registry, parts)
        registry.seq = pointer.seq
        self._observer.snapshot_loaded(pointer)
        return True

    async def pointer(self, kind: Kind = Kind.ROUTING) -> Pointer:
        """The latest pointer, if it is genuine and recent. Raises `RefusedError`."""
        try:
            stored = await self._objects.get(
                self._names.bucket, pointer_key(kind), max_bytes=MAX_POINTER_BYTES
            )
            signed = decode_pointer(stored.body)
            genuine = is_genuine(signed, public_key_of(await self._keys.public_key()))
        except NotFound as error:
            raise RefusedError(Refusal.MISSING, kind, str(error)) from error
        except Permanent as error:
            raise RefusedError(_size_or(Refusal.UNAVAILABLE, error), kind, str(error)) from error
        except PointerError as error:
            raise RefusedError(Refusal.UNREADABLE, kind, str(error)) from error
        pointer = signed.pointer
        if not genuine:
            raise RefusedError(Refusal.BAD_SIGNATURE, kind, "the platform has not signed this pointer")
        if pointer.kind is not kind:
            raise RefusedError(Refusal.TAMPERED, kind, f"the pointer is that of {pointer.kind}")
        age = self._clock() - pointer.generated_at
        if not -self._policy.max_skew_seconds <= age <= self._policy.max_age_seconds:
            raise RefusedError(Refusal.STALE, kind, f"the snapshot is {age:.0f} s old")
        return pointer

    async def _latest_number(self) -> int:
        published = await self._tables.get(self._names.changelog, PUBLISHED)
        number = published.get("number") if published else None
        return number if isinstance(number, int) else 0

    async def _check_log(self, pointer: Pointer, latest: int) -> None:
        """Whether the snapshot is the latest, and the changelog leads on from it."""
        if pointer.number < latest:
            detail = f"snapshot {pointer.number} was put back; {latest} has been published"
            raise RefusedError(Refusal.ROLLED_BACK, pointer.kind, detail)
        head = await self._store.last_seq()
        if pointer.seq > head:
            detail = f"the snapshot has change {pointer.seq}, the changelog ends at {head}"
            raise RefusedError(Refusal.AHEAD_OF_LOG, pointer.kind, detail)
        if pointer.seq < head and await self._store.change(pointer.seq + 1) is None:
            detail = f"change {pointer.seq + 1} is no longer in the changelog"
            raise RefusedError(Refusal.LOG_GAP, pointer.kind, detail)

    async def _parts(
        self, pointer: Pointer, kinds: list[Kind]
    ) -> list[GrantColumns | HmacRows | RoutingRows]:
        bodies: dict[Kind, bytes] = {}
        for kind in kinds:
            if kind not in pointer.parts:
                raise RefusedError(Refusal.UNREADABLE, kind, "the pointer names no such part")

        async def fetch(kind: Kind) -> None:
            bodies[kind] = await self._fetch(kind, pointer.parts[kind])

        try:
            async with anyio.create_task_group() as group:
                for kind in kinds:
                    group.start_soon(fetch, kind)
        except* SnavioError as failures:
            raise failures.exceptions[0] from None
        return [_read(kind, bodies.pop(kind), pointer.parts[kind]) for kind in kinds]

    async def _fetch(self, kind: Kind, ref: PartRef) -> bytes:
        most = self._policy.max_bytes
        if ref.size_bytes > most or ref.raw_bytes > most * self._policy.max_inflation:
            detail = f"the {kind} part has {ref.size_bytes} bytes, {ref.raw_bytes} inflated"
            raise RefusedError(Refusal.TOO_LARGE, kind, detail)
        try:
            stored = await self._objects.get(
                self._names.bucket, part_key(kind, ref.sha256), max_bytes=ref.size_bytes
            )
        except NotFound as error:
            raise RefusedError(Refusal.MISSING, kind, str(error)) from error
        except Permanent as error:
            raise RefusedError(_size_or(Refusal.UNAVAILABLE, error), kind, str(error)) from error
        return stored.body


def _read(kind: Kind, body: bytes, ref: PartRef) -> GrantColumns | HmacRows | RoutingRows:
    if len(body) != ref.size_bytes:
        detail = f"the {kind} part has {len(body)} bytes where {ref.size_bytes} were published"
        raise RefusedError(Refusal.TRUNCATED, kind, detail)
    if hashlib.sha256(body).hexdigest() != ref.sha256:
        raise RefusedError(Refusal.TAMPERED, kind, f"the {kind} part is not what was published")
    try:
        return unpack(kind, body, ref.raw_bytes)
    except PartError as error:
        raise RefusedError(Refusal.UNREADABLE, kind, str(error)) from error


def _size_or(otherwise: Refusal, error: Permanent) -> Refusal:
    return Refusal.TOO_LARGE if error.code == "TooLarge" else otherwise
