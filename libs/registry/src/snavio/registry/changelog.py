"""The numbered log of every change of the registry."""

from __future__ import annotations

import msgspec

from snavio.aws.values import Item
from snavio.registry.rows import Entry, RowKey, decode_entry, kind_of

LOG = "log"
HEAD: dict[str, str | int | bytes] = {"pk": "head", "seq": 0}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change: what was there before and after, who made it and when."""

    seq: int
    pk: str
    sk: str
    at: float
    actor: str
    before: str | None
    after: str | None
    note: str = ""

    @property
    def key(self) -> RowKey:
        """Where the changed entry lies."""
        return self.pk, self.sk

    @property
    def kind(self) -> str:
        """The kind of entry changed."""
        return kind_of(self.pk)

    def entry(self) -> Entry | None:
        """What is there now; None when it was removed. Raises `MalformedRowError`."""
        return None if self.after is None else decode_entry(self.pk, self.sk, self.after)

    def previous(self) -> Entry | None:
        """What was there before; None when it is new. Raises `MalformedRowError`."""
        return None if self.before is None else decode_entry(self.pk, self.sk, self.before)


def change_item(change: Change) -> Item:
    """A change as it lies in the log."""
    return {
        "pk": LOG,
        "seq": change.seq,
        "row_pk": change.pk,
        "row_sk": change.sk,
        "at": change.at,
        "actor": change.actor,
        "before": change.before,
        "after": change.after,
        "note": change.note,
    }


def read_change(item: Item) -> Change:
    """A change from the log. Raises `msgspec.ValidationError` for what is not one."""
    fields = {**item, "pk": item.get("row_pk"), "sk": item.get("row_sk")}
    return msgspec.convert(fields, Change)
