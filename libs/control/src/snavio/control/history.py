"""What was changed, by whom and when; and undoing it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from snavio.control.authority import Principal
from snavio.control.directory import Directory
from snavio.control.models import AuditRecord
from snavio.control.problems import Conflict, Missing, raise_faults
from snavio.control.routes import Routes
from snavio.domain.models import Ban, Grant, Key, Quota, Route
from snavio.registry.changelog import Change
from snavio.registry.rows import Entry, MalformedRowError
from snavio.registry.store import RegistryStore
from snavio.wire.names import tenant_of

_PAGE = 500
_MOST_READ = 10_000
_SECRET = "sealed"


class ChangesPage(msgspec.Struct, frozen=True):
    """Some changes in order; `next_after` asks for those that follow, and is None when there are none yet."""

    changes: list[Change]
    last: int
    next_after: int | None


class History:
    """The registry's changelog and the audit records of everything else, as far as the caller may see."""

    def __init__(
        self, store: RegistryStore, directory: Directory, routes: Routes, *, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._directory = directory
        self._routes = routes
        self._clock = clock

    async def changes(
        self, principal: Principal, *, after: int, limit: int, kind: str | None = None
    ) -> ChangesPage:
        """Changes with higher numbers, in order, without secrets."""
        principal.require_viewer()
        last = await self._store.last_seq()
        own = await self._own_targets(principal)
        found: list[Change] = []
        while True:
            read = await self._store.changes(after=after, limit=_PAGE)
            for change in read:
                after = change.seq
                if (kind is None or change.kind == kind) and _concerns(principal, change, own):
                    found.append(_without_secrets(change))
                    if len(found) == limit:
                        return ChangesPage(found, last, after if after < last else None)
            if len(read) < _PAGE:
                return ChangesPage(found, last, None)

    async def latest(self, principal: Principal, *, limit: int, kind: str | None = None) -> ChangesPage:
        """The latest changes, in order. Looks back a bounded way for those that concern the caller."""
        last = await self._store.last_seq()
        sees_all = principal.tenant is None and kind is None
        start = max(0, last - (limit if sees_all else _MOST_READ))
        page = await self.changes(principal, after=start, limit=_MOST_READ, kind=kind)
        return ChangesPage(page.changes[-limit:], page.last, None)

    async def roll_back(self, principal: Principal, seq: int) -> Change | None:
        """Put back what was there before a change; None when that is how it is already."""
        change = await self._store.change(seq)
        own = await self._own_targets(principal)
        if change is None or not _concerns(principal, change, own):
            raise Missing("unknown-change", f"The changelog holds no change number {seq}.")
        _require_right(principal, change, own)
        before = change.previous()
        if isinstance(before, Route):
            raise_faults(await self._routes.verify(before))
        number = await self._store.roll_back(seq, actor=principal.subject)
        made = None if number is None else await self._store.change(number)
        return None if made is None else _without_secrets(made)

    async def audit(self, principal: Principal, *, month: str | None, limit: int) -> list[AuditRecord]:
        """The latest changes beside the registry, newest first."""
        principal.require_viewer()
        wanted = month or f"{datetime.fromtimestamp(self._clock(), UTC):%Y-%m}"
        records = await self._directory.audit(wanted, limit=limit)
        return [record for record in records if principal.sees(record.tenant)]

    async def _own_targets(self, principal: Principal) -> frozenset[str]:
        if principal.tenant is None:
            return frozenset()
        return frozenset(
            owner.target for owner in await self._directory.targets() if owner.tenant == principal.tenant
        )


def _require_right(principal: Principal, change: Change, own_targets: frozenset[str]) -> None:
    if change.kind == "seal":
        raise Conflict("not-reversible", "A data key cannot be rolled back: secrets depend on it.")
    entry = _entry(change)
    # That a grant concerns its source does not make it the source's to restore.
    if isinstance(entry, Route | Grant) and entry.target in own_targets:
        return
    principal.require_admin()


def _concerns(principal: Principal, change: Change, own_targets: frozenset[str]) -> bool:
    if principal.tenant is None:
        return principal.sees(None)
    match _entry(change):
        case Route(tenant=tenant):
            return tenant == principal.tenant
        case Key(source=source):
            return tenant_of(source) == principal.tenant
        case Grant(source=source, target=target) | Quota(source=source, target=target):
            return tenant_of(source) == principal.tenant or target in own_targets
        case Ban(source=source, target=target):
            return tenant_of(source) == principal.tenant or target in own_targets
        case _:
            return False


def _entry(change: Change) -> Entry | None:
    try:
        return change.entry() or change.previous()
    except MalformedRowError:
        return None


def _without_secrets(change: Change) -> Change:
    if change.kind not in {"key", "seal"}:
        return change
    return msgspec.structs.replace(change, before=_masked(change.before), after=_masked(change.after))


def _masked(body: str | None) -> str | None:
    if body is None:
        return None
    fields: dict[str, Any] = msgspec.json.decode(body)
    fields.pop(_SECRET, None)
    return msgspec.json.encode(fields).decode()
