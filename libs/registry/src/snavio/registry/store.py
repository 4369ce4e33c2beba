"""Writing the registry: each change is one transaction with its entry in the changelog.

The log's head is advanced by a condition on its last number, so numbers have no gaps and no two changes share one; a
reader that has seen number n and asks for what follows misses nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

import anyio
import msgspec

from snavio.aws.errors import ConditionFailed, SnavioError, Transient
from snavio.aws.ports import Tables
from snavio.aws.values import Absent, Condition, Delete, Equals, Item, Put, SortRange, Update, Write
from snavio.aws.values import Change as ItemChange
from snavio.domain.models import Ban, Grant, Key, Quota, Route, Settings
from snavio.registry.changelog import HEAD, LOG, Change, change_item, read_change
from snavio.registry.rows import (
    SETTINGS_KEY,
    Entry,
    MalformedRowError,
    RowKey,
    SealKey,
    ban_key,
    decode_row,
    encode_entry,
    grant_key,
    key_of,
    quota_key,
    route_key,
)
from snavio.wire.names import Names

_ATTEMPTS = 40
E = TypeVar("E", bound=Entry)


class ContentionError(SnavioError):
    """Too many others were changing the registry at the same time."""


class RegistryStore:
    """The registry as its writers see it."""

    def __init__(self, tables: Tables, names: Names, *, clock: Callable[[], float]) -> None:
        self._tables = tables
        self._names = names
        self._clock = clock

    # Routes
    async def route(self, target: str, command: str) -> Route | None:
        """One route, as it is now."""
        return await self._read(route_key(target, command), Route)

    async def routes_of(self, target: str) -> list[Route]:
        """Every route of a target, by command."""
        return [entry for entry in await self._partition(f"route#{target}") if isinstance(entry, Route)]

    async def put_route(self, route: Route, *, actor: str) -> Route:
        """Register or change a route; its version follows the one before. The same route again is no change."""
        numbered = route

        def number(standing: Entry | None) -> Entry:
            nonlocal numbered
            version = standing.version if isinstance(standing, Route) else 0
            numbered = msgspec.structs.replace(route, version=version)
            if standing is None or encode_entry(numbered) != encode_entry(standing):
                numbered = msgspec.structs.replace(route, version=version + 1)
            return numbered

        await self._revise(key_of(route), number, actor=actor)
        return numbered

    async def delete_route(self, target: str, command: str, *, actor: str) -> bool:
        """Remove a route; False when there was none."""
        return await self._write(route_key(target, command), None, actor=actor) is not None

    # Grants
    async def grants_of(self, target: str, command: str) -> list[Grant]:
        """Every grant for a command of a target, by source."""
        return [
            entry for entry in await self._partition(f"grant#{target}#{command}") if isinstance(entry, Grant)
        ]

    async def put_grant(self, grant: Grant, *, actor: str) -> int | None:
        """Grant, or change how long a grant may be remembered."""
        return await self._write(key_of(grant), grant, actor=actor)

    async def revoke_grant(self, source: str, target: str, command: str, *, actor: str) -> bool:
        """Take a grant back; False when there was none."""
        return await self._write(grant_key(source, target, command), None, actor=actor) is not None

    # Keys
    async def keys(self, source: str) -> list[Key]:
        """Every version of a source's key."""
        return [entry for entry in await self._partition(f"key#{source}") if isinstance(entry, Key)]

    async def add_key(self, key: Key, *, actor: str) -> bool:
        """Add a version that does not exist yet; False when somebody else added it first."""
        await self._revise(key_of(key), lambda standing: standing or key, actor=actor)
        added = await self._read(key_of(key), Key)
        return added is not None and added.sealed == key.sealed

    async def put_key(self, key: Key, *, actor: str) -> int | None:
        """Add a key, or change when one ends."""
        return await self._write(key_of(key), key, actor=actor)

    async def delete_key(self, key: Key, *, actor: str) -> int | None:
        """Remove a key: it is refused as unknown from now on."""
        return await self._write(key_of(key), None, actor=actor)

    async def put_seal_key(self, seal: SealKey, *, actor: str) -> int | None:
        """Add a data key under which secrets are encrypted."""
        return await self._write(key_of(seal), seal, actor=actor)

    async def seal_keys(self) -> list[SealKey]:
        """Every data key."""
        return [entry for entry in await self._partition("seal") if isinstance(entry, SealKey)]

    # Bans, quotas, settings
    async def put_ban(self, ban: Ban, *, actor: str) -> int | None:
        """Ban a source, or change its ban: an operator's word stands, also where it is milder than what stood before."""
        return await self._write(key_of(ban), ban, actor=actor)

    async def add_ban(self, ban: Ban, *, actor: str) -> int | None:
        """Ban a source by rule, without anybody's decision; the change's number, or None when nothing changed.

        A ban in force that is stricter, or that lasts as long, is left as it is: no rule undoes what an operator said.
        """
        now = self._clock()
        return await self._revise(
            key_of(ban), lambda standing: standing if _outweighs(standing, ban, now) else ban, actor=actor
        )

    async def bans_of(self, source: str) -> list[Ban]:
        """Every ban of a source, over or not."""
        return [entry for entry in await self._partition(f"ban#{source}") if isinstance(entry, Ban)]

    async def lift_ban(self, source: str, target: str | None, command: str | None, *, actor: str) -> bool:
        """End a ban; False when there was none."""
        return await self._write(ban_key(source, target, command), None, actor=actor) is not None

    async def put_quota(self, quota: Quota, *, actor: str) -> int | None:
        """Set a source's own quota."""
        return await self._write(key_of(quota), quota, actor=actor)

    async def quotas_of(self, source: str) -> list[Quota]:
        """Every quota of a source."""
        return [entry for entry in await self._partition(f"quota#{source}") if isinstance(entry, Quota)]

    async def delete_quota(self, source: str, target: str, command: str, *, actor: str) -> bool:
        """Remove a source's own quota; False when there was none."""
        return await self._write(quota_key(source, target, command), None, actor=actor) is not None

    async def settings(self) -> Settings:
        """The platform's settings."""
        return await self._read(SETTINGS_KEY, Settings) or Settings()

    async def put_settings(self, settings: Settings, *, actor: str) -> int | None:
        """Change the platform's settings."""
        return await self._write(SETTINGS_KEY, settings, actor=actor)

    async def remove_if_same(self, entry: Entry, *, actor: str, note: str = "") -> bool:
        """Remove an entry, unless it has changed since it was seen."""
        removed = await self._revise(
            key_of(entry), lambda standing: None if standing == entry else standing, actor=actor, note=note
        )
        return removed is not None

    # The log
    async def last_seq(self) -> int:
        """The number of the latest change; 0 before the first."""
        head = await self._tables.get(self._names.changelog, HEAD)
        return _number(head, "last")

    async def changes(self, *, after: int = 0, limit: int | None = None) -> list[Change]:
        """Changes with higher numbers, in order."""
        found: list[Change] = []
        cursor: Item | None = None
        while True:
            page = await self._tables.query(
                self._names.changelog,
                ("pk", LOG),
                sort=SortRange("seq", low=after + 1),
                limit=limit,
                cursor=cursor,
            )
            found += [read_change(item) for item in page.items]
            cursor = page.cursor
            if cursor is None or (limit is not None and len(found) >= limit):
                return found[:limit]

    async def change(self, seq: int) -> Change | None:
        """One change."""
        found = await self.changes(after=seq - 1, limit=1)
        return found[0] if found and found[0].seq == seq else None

    async def roll_back(self, seq: int, *, actor: str) -> int | None:
        """Undo one change: put back what was there before it. Recorded as a change of its own."""
        change = await self.change(seq)
        if change is None:
            raise SnavioError(f"the changelog holds no change number {seq}")
        before = change.previous()
        if isinstance(before, Route):
            # A version is never used twice.
            standing = await self.route(before.target, before.command)
            before = msgspec.structs.replace(
                before, version=max(before.version, standing.version if standing else 0) + 1
            )
        return await self._write(change.key, before, actor=actor, note=f"rolls back change {seq}")

    async def _read(self, key: RowKey, kind: type[E]) -> E | None:
        item = await self._tables.get(self._names.registry, {"pk": key[0], "sk": key[1]})
        entry = decode_row(item) if item else None
        return entry if isinstance(entry, kind) else None

    async def _partition(self, pk: str) -> list[Entry]:
        found: list[Entry] = []
        cursor: Item | None = None
        while True:
            page = await self._tables.query(self._names.registry, ("pk", pk), cursor=cursor)
            found += [decode_row(item) for item in page.items]
            cursor = page.cursor
            if cursor is None:
                return found

    async def _write(self, key: RowKey, entry: Entry | None, *, actor: str, note: str = "") -> int | None:
        """Make one change; its number, or None when nothing would change."""
        return await self._revise(key, lambda _standing: entry, actor=actor, note=note)

    async def _revise(
        self, key: RowKey, revise: Callable[[Entry | None], Entry | None], *, actor: str, note: str = ""
    ) -> int | None:
        """Change an entry by what it is at that moment; the change's number, or None when nothing would change."""
        for attempt in range(_ATTEMPTS):
            item = await self._tables.get(self._names.registry, {"pk": key[0], "sk": key[1]})
            before = None if item is None else str(item["body"])
            entry = revise(_readable(item))
            after = None if entry is None else encode_entry(entry)
            if before == after:
                return None
            seq = await self.last_seq() + 1
            change = Change(
                seq=seq,
                pk=key[0],
                sk=key[1],
                at=self._clock(),
                actor=actor,
                before=before,
                after=after,
                note=note,
            )
            try:
                await self._tables.transact(self._writes(change))
            except (ConditionFailed, Transient):
                # Somebody else took this number or changed this entry. A transaction whose answer was lost is
                # found done above, as an entry that is already as it should be.
                await anyio.sleep(random.uniform(0, min(0.5, 0.01 * 2**attempt)))
            else:
                return seq
        raise ContentionError(
            f"the registry is being changed by too many others; {key[0]} {key[1]} was not written"
        )

    def _writes(self, change: Change) -> list[Write]:
        unchanged: Condition = Absent("pk") if change.before is None else Equals("body", change.before)
        advanced: Condition = Equals("last", change.seq - 1) if change.seq > 1 else Absent("last")
        row: Write
        if change.after is None:
            row = Delete(self._names.registry, {"pk": change.pk, "sk": change.sk}, unchanged)
        else:
            row = Put(
                self._names.registry, {"pk": change.pk, "sk": change.sk, "body": change.after}, unchanged
            )
        head = Update(self._names.changelog, dict(HEAD), ItemChange(assign={"last": change.seq}), advanced)
        return [head, Put(self._names.changelog, change_item(change), Absent("pk")), row]


def _readable(item: Item | None) -> Entry | None:
    """The entry in a row, or None: what cannot be read may be replaced."""
    try:
        return None if item is None else decode_row(item)
    except MalformedRowError:
        return None


def _outweighs(standing: Entry | None, ban: Ban, now: float) -> bool:
    """Whether a ban keeps its place: it is in force, and stricter than the other or as long."""
    if not isinstance(standing, Ban) or (standing.until is not None and standing.until <= now):
        return False
    if standing.mode.strictness > ban.mode.strictness:
        return True
    return standing.until is None or (ban.until is not None and standing.until >= ban.until)


def _number(item: Item | None, name: str) -> int:
    value = item.get(name) if item else None
    return value if isinstance(value, int) else 0
