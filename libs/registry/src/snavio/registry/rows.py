"""How entries of the registry lie in their table: one row each, keyed by what they are about.

The same decoding serves the cold load, the changelog and snapshots, so that nothing enters a cache unchecked.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from snavio.aws.values import Item
from snavio.domain.models import Ban, Grant, Key, Quota, Route, Settings


class SealKey(msgspec.Struct, frozen=True, kw_only=True):
    """A data key, sealed with KMS, under which HMAC secrets are encrypted."""

    id: str
    sealed: bytes
    created_at: float


Entry: TypeAlias = Route | Grant | Key | Ban | Quota | Settings | SealKey
RowKey: TypeAlias = tuple[str, str]

KINDS: dict[str, type[Entry]] = {
    "route": Route,
    "grant": Grant,
    "key": Key,
    "ban": Ban,
    "quota": Quota,
    "settings": Settings,
    "seal": SealKey,
}
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(type_) for kind, type_ in KINDS.items()
}
_encode = msgspec.json.Encoder().encode


class MalformedRowError(ValueError):
    """A row that is not a valid entry; it is counted and left out, and everything else goes on."""


def route_key(target: str, command: str) -> RowKey:
    """Where a route lies."""
    return f"route#{target}", command


def grant_key(source: str, target: str, command: str) -> RowKey:
    """Where a grant lies: beside the others for the same command, so that they can be listed together."""
    return f"grant#{target}#{command}", source


def key_key(source: str, version_id: str) -> RowKey:
    """Where a version of a source's key lies."""
    return f"key#{source}", version_id


def ban_key(source: str, target: str | None, command: str | None) -> RowKey:
    """Where a ban lies."""
    return f"ban#{source}", f"{target or '*'}#{command or '*'}"


def quota_key(source: str, target: str, command: str) -> RowKey:
    """Where a quota lies."""
    return f"quota#{source}", f"{target}#{command}"


SETTINGS_KEY: RowKey = ("settings", "platform")


def kind_of(pk: str) -> str:
    """The kind of entry a partition holds."""
    return pk.partition("#")[0]


def key_of(entry: Entry) -> RowKey:
    """Where an entry lies."""
    match entry:
        case Route():
            return route_key(entry.target, entry.command)
        case Grant():
            return grant_key(entry.source, entry.target, entry.command)
        case Key():
            return key_key(entry.source, entry.version_id)
        case Ban():
            return ban_key(entry.source, entry.target, entry.command)
        case Quota():
            return quota_key(entry.source, entry.target, entry.command)
        case SealKey():
            return "seal", entry.id
        case Settings():
            return SETTINGS_KEY


def encode_entry(entry: Entry) -> str:
    """An entry as the text kept in its row and in the changelog."""
    return _encode(entry).decode()


def decode_entry(pk: str, sk: str, body: object) -> Entry:
    """The entry in a row. Raises `MalformedRowError` when it is not valid, or not what its key says."""
    decoder = _decoders.get(kind_of(pk))
    if decoder is None or not isinstance(body, str):
        raise MalformedRowError(f"{pk} {sk}: not an entry of the registry")
    try:
        entry: Entry = decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise MalformedRowError(f"{pk} {sk}: {problem}") from None
    if key_of(entry) != (pk, sk):
        raise MalformedRowError(f"{pk} {sk}: the entry belongs at another key")
    return entry


def decode_row(item: Item) -> Entry:
    """The entry in an item of the registry table."""
    return decode_entry(str(item.get("pk")), str(item.get("sk")), item.get("body"))
