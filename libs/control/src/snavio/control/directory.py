"""The control table: one row a tenant, a service and a target's owner, each change written with its audit record."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

import msgspec

from snavio.aws.errors import ConditionFailed
from snavio.aws.ports import Tables
from snavio.aws.values import Absent, Condition, Delete, Equals, Item, Put, SortRange, Write
from snavio.control.models import AuditRecord, Owner, Service, Tenant
from snavio.control.problems import Conflict
from snavio.wire.names import Names

R = TypeVar("R", Tenant, Service, Owner)
Row: TypeAlias = Tenant | Service | Owner
_encode = msgspec.json.Encoder().encode

CHANGED_MEANWHILE = "changed-meanwhile"
"""The kind of conflict that trying again may resolve."""


class Edit(msgspec.Struct, frozen=True):
    """One row before and after; None where there is none."""

    before: Row | None
    after: Row | None


class Directory:
    """Tenants, services and owners. Writers name what they saw, so nobody overwrites what they have not read."""

    def __init__(self, tables: Tables, names: Names, *, clock: Callable[[], float]) -> None:
        self._tables = tables
        self._table = names.control
        self._clock = clock

    async def tenant(self, tenant: str) -> Tenant | None:
        """One tenant."""
        return await self._get(("tenants", tenant), Tenant)

    async def tenants(self) -> list[Tenant]:
        """Every tenant, by name."""
        return await self._list("tenants", Tenant)

    async def service(self, tenant: str, service: str) -> Service | None:
        """One service."""
        return await self._get((f"services#{tenant}", service), Service)

    async def services(self, tenant: str) -> list[Service]:
        """A tenant's services, by name."""
        return await self._list(f"services#{tenant}", Service)

    async def owner(self, target: str) -> Owner | None:
        """Whose target it is."""
        return await self._get(("targets", target), Owner)

    async def targets(self) -> list[Owner]:
        """Every target with its owner, by name."""
        return await self._list("targets", Owner)

    async def change(self, edits: Sequence[Edit], *, actor: str, action: str) -> None:
        """Make the edits together, with an audit record for each. Raises `Conflict` when a row is not as it was seen."""
        writes: list[Write] = []
        for edit in edits:
            writes += [self._write(edit), self._audit_of(edit, actor, action)]
        try:
            await self._tables.transact(writes, token=uuid.uuid4().hex)
        except ConditionFailed:
            raise Conflict(CHANGED_MEANWHILE, "It was changed by somebody else at the same time.") from None

    async def note(
        self, *, actor: str, action: str, subject: str, tenant: str | None = None, after: str | None = None
    ) -> None:
        """Record something that changed no row here."""
        record = self._record(actor=actor, action=action, subject=subject, tenant=tenant, after=after)
        await self._tables.put(self._table, _audit_item(record))

    async def audit(self, month: str, *, limit: int) -> list[AuditRecord]:
        """The latest records of a month, `2026-11`, newest first."""
        page = await self._tables.query(self._table, ("pk", f"audit#{month}"), limit=limit, descending=True)
        return [msgspec.json.decode(str(item["body"]), type=AuditRecord) for item in page.items]

    def _write(self, edit: Edit) -> Write:
        row = edit.after or edit.before
        if row is None:
            raise ValueError("an edit of nothing")
        pk, sk = _key(row)
        seen: Condition = Equals("body", _body(edit.before)) if edit.before else Absent("pk")
        if edit.after is None:
            return Delete(self._table, {"pk": pk, "sk": sk}, seen)
        return Put(self._table, {"pk": pk, "sk": sk, "body": _body(edit.after)}, seen)

    def _audit_of(self, edit: Edit, actor: str, action: str) -> Write:
        row = edit.after or edit.before
        subject = "#".join(_key(row)) if row else ""
        record = self._record(
            actor=actor,
            action=action,
            subject=subject,
            tenant=row.tenant if row else None,
            before=_body(edit.before) if edit.before else None,
            after=_body(edit.after) if edit.after else None,
        )
        return Put(self._table, _audit_item(record), Absent("pk"))

    def _record(
        self,
        *,
        actor: str,
        action: str,
        subject: str,
        tenant: str | None = None,
        before: str | None = None,
        after: str | None = None,
    ) -> AuditRecord:
        return AuditRecord(
            id=uuid.uuid4().hex,
            at=self._clock(),
            actor=actor,
            action=action,
            subject=subject,
            tenant=tenant,
            before=before,
            after=after,
        )

    async def _get(self, key: tuple[str, str], kind: type[R]) -> R | None:
        item = await self._tables.get(self._table, {"pk": key[0], "sk": key[1]})
        return None if item is None else msgspec.json.decode(str(item["body"]), type=kind)

    async def _list(self, pk: str, kind: type[R]) -> list[R]:
        found: list[R] = []
        cursor: Item | None = None
        while True:
            page = await self._tables.query(self._table, ("pk", pk), sort=SortRange("sk"), cursor=cursor)
            found += [msgspec.json.decode(str(item["body"]), type=kind) for item in page.items]
            cursor = page.cursor
            if cursor is None:
                return found


def _key(row: Row) -> tuple[str, str]:
    match row:
        case Tenant():
            return "tenants", row.tenant
        case Service():
            return f"services#{row.tenant}", row.service
        case Owner():
            return "targets", row.target


def _body(row: Row) -> str:
    return _encode(row).decode()


def _audit_item(record: AuditRecord) -> Item:
    moment = datetime.fromtimestamp(record.at, UTC)
    return {
        "pk": f"audit#{moment:%Y-%m}",
        "sk": f"{moment:%Y-%m-%dT%H:%M:%S.%f}#{record.id}",
        "body": _encode(record).decode(),
    }
