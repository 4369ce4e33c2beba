"""The HMAC secrets of producers: made, rotated with an overlap, handed out, and removed."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from snavio.control.authority import Principal, system
from snavio.control.problems import Conflict, Missing
from snavio.domain.models import Key
from snavio.registry.rows import SealKey
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.wire.names import Names, tenant_of

DAY = 24 * 3600.0
_SECRET_BYTES = 32
_PREFIX = "hmac-v"

Positive = Annotated[float, msgspec.Meta(gt=0)]


class KeyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of key rotation."""

    rotate_seconds: Positive = 30 * DAY
    overlap_seconds: Positive = 7 * DAY
    """How long the previous version is still accepted."""
    poll_note_seconds: Positive = 3600.0
    """The least time between two records of a poll: each is a change every worker reads."""
    seal_seconds: Positive = 90 * DAY
    """How long a data key seals new secrets before another takes its place."""


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a secret in the clear, for the producer."""

    version_id: str
    secret: bytes
    current: bool
    not_after: float | None

    @property
    def secret_b64(self) -> str:
        """The secret as JSON can carry it."""
        return base64.b64encode(self.secret).decode()


class Keys:
    """Versions `hmac-v1`, `hmac-v2`, … of each source: the newest in use, the one before it in its grace."""

    def __init__(
        self,
        store: RegistryStore,
        sealer: Sealer,
        names: Names,
        policy: KeyPolicy,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._names = names
        self._policy = policy
        self._clock = clock

    async def first(self, source: str, *, actor: str) -> IssuedKey:
        """A source's current key; its first when it has none."""
        if not await self._store.keys(source):
            # Losing the race to another is as good: the key that won is there.
            await self._add(source, 1, actor=actor)
        return (await self.issued(source))[-1]

    async def issued(self, source: str) -> list[IssuedKey]:
        """Every version still accepted, oldest first, in the clear."""
        now = self._clock()
        keys = in_order(await self._store.keys(source))
        await self._open_seals()
        return [
            IssuedKey(
                version_id=key.version_id,
                secret=self._sealer.unseal(key.sealed, source=source, version_id=key.version_id),
                current=key is keys[-1],
                not_after=key.not_after,
            )
            for key in keys
            if key.not_after is None or now < key.not_after
        ]

    async def versions(self, principal: Principal, source: str) -> list[Key]:
        """Every version there is, oldest first, sealed."""
        keys = await self._store.keys(source) if principal.sees(tenant_of(source)) else []
        if not keys:
            raise Missing("unknown-source", f"No service {source} is registered.")
        return in_order(keys)

    async def rotate(
        self, principal: Principal, source: str, *, expected: str | None = None
    ) -> tuple[Key, Key]:
        """Make a new version; the one before keeps its grace, older ones go. Returns the new and the previous.

        `expected` names the version the caller believes to be current: a repeated request then rotates once.
        """
        principal.require_admin()
        current = (await self.versions(principal, source))[-1]
        if expected is not None and current.version_id != expected:
            raise Conflict("rotated-already", f"The current version is {current.version_id}, not {expected}.")
        actor = principal.subject
        if not await self._add(source, number_of(current) + 1, actor=actor):
            raise Conflict("rotated-already", "It was rotated by somebody else at the same time.")
        previous, newest = (await self.settle(source, actor=actor))[-2:]
        return newest, previous

    async def settle(self, source: str, *, actor: str) -> list[Key]:
        """Finish what a rotation may have left: an end for the previous version, no versions before it."""
        keys = in_order(await self._store.keys(source))
        for key in keys[:-2]:
            await self._store.delete_key(key, actor=actor)
        kept = keys[-2:]
        if len(kept) > 1 and kept[0].not_after is None:
            kept[0] = msgspec.structs.replace(kept[0], not_after=self._clock() + self._policy.overlap_seconds)
            await self._store.put_key(kept[0], actor=actor)
        return kept

    async def rotate_due(self, sources: Sequence[str]) -> list[str]:
        """Rotate what has served its time, and finish interrupted rotations. Returns the sources rotated."""
        keeper = system("key-rotation")
        rotated: list[str] = []
        for source in sources:
            keys = await self.settle(source, actor=keeper.subject)
            if keys and self._clock() - keys[-1].created_at >= self._policy.rotate_seconds:
                try:
                    await self.rotate(keeper, source, expected=keys[-1].version_id)
                except Conflict:
                    continue
                rotated.append(source)
        return rotated

    async def note_poll(self, source: str, principal: Principal) -> None:
        """Record that the producer has fetched its keys, unless that is known well enough already."""
        now = self._clock()
        keys = in_order(await self._store.keys(source))
        if not keys:
            return
        newest = keys[-1].created_at
        for key in keys:
            polled = key.last_poll_at
            # A poll from before the newest version existed says nothing about whether the producer has it.
            if polled is None or polled < newest or now - polled >= self._policy.poll_note_seconds:
                await self._store.put_key(
                    msgspec.structs.replace(key, last_poll_at=now), actor=principal.subject
                )

    async def revoke(self, source: str, *, actor: str) -> None:
        """Remove every version: from now on the source is unknown."""
        for key in await self._store.keys(source):
            await self._store.delete_key(key, actor=actor)

    async def _add(self, source: str, number: int, *, actor: str) -> bool:
        version_id = f"{_PREFIX}{number}"
        seal = await self._current_seal(actor)
        sealed = self._sealer.seal(
            os.urandom(_SECRET_BYTES), seal_id=seal.id, source=source, version_id=version_id
        )
        key = Key(source=source, version_id=version_id, sealed=sealed, created_at=self._clock())
        return await self._store.add_key(key, actor=actor)

    async def _current_seal(self, actor: str) -> SealKey:
        now = self._clock()
        seals = await self._store.seal_keys()
        newest = max(seals, key=lambda seal: seal.created_at, default=None)
        if newest is not None and now - newest.created_at < self._policy.seal_seconds:
            await self._sealer.open(newest)
            return newest
        fresh = await self._sealer.new_key(self._names.secrets_key, now)
        await self._store.put_seal_key(fresh, actor=actor)
        return fresh

    async def _open_seals(self) -> None:
        for seal in await self._store.seal_keys():
            await self._sealer.open(seal)


def number_of(key: Key) -> int:
    """The number in a version's name."""
    return int(key.version_id.removeprefix(_PREFIX))


def in_order(keys: Sequence[Key]) -> list[Key]:
    """Versions from the oldest to the newest; `hmac-v10` comes after `hmac-v9`."""
    return sorted(keys, key=number_of)
