"""The documents of what was changed. Times are RFC 3339, as people and programs write them."""

from __future__ import annotations

from typing import Any

import msgspec

from snavio.control.history import ChangesPage
from snavio.control.models import AuditRecord
from snavio.registry.changelog import Change
from snavio.wire.times import format_time


class ChangeDocument(msgspec.Struct, frozen=True):
    """A change of the registry. What was there before and after is None where there was nothing."""

    seq: int
    at: str
    actor: str
    kind: str
    key: list[str]
    before: Any
    after: Any
    note: str

    @classmethod
    def of(cls, change: Change) -> ChangeDocument:
        """The document of a change."""
        return cls(
            change.seq,
            format_time(change.at),
            change.actor,
            change.kind,
            [change.pk, change.sk],
            None if change.before is None else msgspec.json.decode(change.before),
            None if change.after is None else msgspec.json.decode(change.after),
            change.note,
        )


class ChangelogDocument(msgspec.Struct, frozen=True):
    """Some changes in order. Ask again with `after` = `next_after` for those that follow."""

    changes: list[ChangeDocument]
    last: int
    next_after: int | None

    @classmethod
    def of(cls, page: ChangesPage) -> ChangelogDocument:
        """The document of a page."""
        return cls([ChangeDocument.of(change) for change in page.changes], page.last, page.next_after)


class AuditDocument(msgspec.Struct, frozen=True):
    """A change beside the registry."""

    at: str
    actor: str
    action: str
    subject: str
    tenant: str | None
    before: Any
    after: Any

    @classmethod
    def of(cls, record: AuditRecord) -> AuditDocument:
        """The document of an audit record."""
        return cls(
            format_time(record.at),
            record.actor,
            record.action,
            record.subject,
            record.tenant,
            None if record.before is None else msgspec.json.decode(record.before),
            None if record.after is None else msgspec.json.decode(record.after),
        )
