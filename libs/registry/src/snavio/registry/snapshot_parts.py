"""What the three parts of a snapshot hold, and how each lies in its object. Pure.

Grants are columns: names once, then numbers, so that a million of them load without a million objects. The rest is rows.
A part is msgpack, compressed. It is named by the digest of its bytes, so that whoever knows the name knows the content.
"""

from __future__ import annotations

import hashlib
import zlib
from enum import StrEnum

import msgspec
import numpy as np

from snavio.domain.models import Ban, Command, Grant, Key, Name, Quota, Route, Settings, Source
from snavio.registry.rows import Entry, SealKey
from snavio.registry.view import Registry

_LEVEL = 6
_HIGHEST_CODE = 3


class Kind(StrEnum):
    """The parts, by the folder each lies in."""

    ACL = "acl"
    HMAC = "hmac"
    ROUTING = "snapshot"
    """Routes, bans, quotas and settings. Its pointer is the one that decides which parts belong together."""


class PartError(ValueError):
    """Bytes that are not a part of a snapshot."""


class GrantColumns(msgspec.Struct, frozen=True):
    """Every grant: which source, which (target, command), which profile."""

    sources: list[Source]
    pairs: list[tuple[Name, Command]]
    source_ids: bytes
    """Little-endian 32-bit numbers, one a grant, ascending; those of a source ascend by pair."""
    pair_ids: bytes
    codes: bytes
    """The profile of each, one byte."""
    ends: list[tuple[int, float]] = []
    """Which grants end by themselves, by their place, and when."""


class HmacRows(msgspec.Struct, frozen=True):
    """Keys, sealed as they are in the table, and the data keys they are sealed with, which KMS alone opens."""

    keys: list[Key]
    seals: list[SealKey]


class RoutingRows(msgspec.Struct, frozen=True):
    """Everything else."""

    routes: list[Route]
    bans: list[Ban]
    quotas: list[Quota]
    settings: Settings


class Packed(msgspec.Struct, frozen=True):
    """A part as it is stored."""

    kind: Kind
    body: bytes
    sha256: str
    raw_bytes: int
    """Its size before compression: what a reader must be ready to hold."""
    entries: int


_TYPES: dict[Kind, type[GrantColumns | HmacRows | RoutingRows]] = {
    Kind.ACL: GrantColumns,
    Kind.HMAC: HmacRows,
    Kind.ROUTING: RoutingRows,
}
_encode = msgspec.msgpack.Encoder().encode


def pack_all(registry: Registry) -> list[Packed]:
    """Every part of a registry. The same registry always gives the same bytes."""
    entries = registry.entries()
    columns = _columns(registry)
    hmac = HmacRows(
        [entry for entry in entries if isinstance(entry, Key)],
        [entry for entry in entries if isinstance(entry, SealKey)],
    )
    routing = RoutingRows(
        [entry for entry in entries if isinstance(entry, Route)],
        [entry for entry in entries if isinstance(entry, Ban)],
        [entry for entry in entries if isinstance(entry, Quota)],
        registry.settings,
    )
    rows = len(routing.routes) + len(routing.bans) + len(routing.quotas)
    return [
        _packed(Kind.ACL, columns, len(columns.codes)),
        _packed(Kind.HMAC, hmac, len(hmac.keys)),
        _packed(Kind.ROUTING, routing, rows),
    ]


def unpack(kind: Kind, body: bytes, raw_bytes: int) -> GrantColumns | HmacRows | RoutingRows:
    """The part in these bytes, which must inflate to exactly so many. Raises `PartError`."""
    inflating = zlib.decompressobj()
    try:
        raw = inflating.decompress(body, raw_bytes + 1)
    except zlib.error as problem:
        raise PartError(f"the {kind} part does not inflate: {problem}") from None
    if len(raw) != raw_bytes or not inflating.eof:
        raise PartError(f"the {kind} part does not inflate to the {raw_bytes} bytes it should have")
    try:
        part = msgspec.msgpack.decode(raw, type=_TYPES[kind])
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise PartError(f"the {kind} part cannot be read: {problem}") from None
    if isinstance(part, GrantColumns):
        _check(part)
    return part


def fill(registry: Registry, parts: list[GrantColumns | HmacRows | RoutingRows]) -> None:
    """Put everything from parts that were read without fault into an empty registry."""
    for part in parts:
        match part:
            case GrantColumns():
                source_ids, pair_ids = _numbers(part.source_ids), _numbers(part.pair_ids)
                ends: dict[tuple[str, str, str], float] = {
                    (part.sources[int(source_ids[place])], *part.pairs[int(pair_ids[place])]): end
                    for place, end in part.ends
                }
                codes = np.frombuffer(part.codes, dtype=np.uint8)
                registry.grants.load_columns(part.sources, part.pairs, source_ids, pair_ids, codes, ends)
            case HmacRows():
                _put(registry, [*part.seals, *part.keys])
            case RoutingRows():
                _put(registry, [*part.routes, *part.bans, *part.quotas, part.settings])


def _put(registry: Registry, entries: list[Entry]) -> None:
    for entry in entries:
        if not isinstance(entry, Grant):
            registry.put(entry)


def _columns(registry: Registry) -> GrantColumns:
    found = registry.grants.columns()
    return GrantColumns(
        found.sources,
        found.pairs,
        found.source_ids.astype("<u4").tobytes(),
        found.pair_ids.astype("<u4").tobytes(),
        found.codes.tobytes(),
        found.ends,
    )


def _check(part: GrantColumns) -> None:
    count = len(part.codes)
    if len(part.source_ids) != 4 * count or len(part.pair_ids) != 4 * count:
        raise PartError("the columns of grants differ in length")
    if not count:
        return
    highest = (
        (_numbers(part.source_ids).max(), len(part.sources) - 1),
        (_numbers(part.pair_ids).max(), len(part.pairs) - 1),
        (np.frombuffer(part.codes, dtype=np.uint8).max(), _HIGHEST_CODE),
        (max((place for place, _ in part.ends), default=0), count - 1),
    )
    if any(found > allowed for found, allowed in highest) or any(place < 0 for place, _ in part.ends):
        raise PartError("a column of grants names what is not there")


def _numbers(column: bytes) -> np.ndarray:
    return np.frombuffer(column, dtype="<u4")


def _packed(kind: Kind, part: GrantColumns | HmacRows | RoutingRows, entries: int) -> Packed:
    raw = _encode(part)
    body = zlib.compress(raw, _LEVEL)
    return Packed(kind, body, hashlib.sha256(body).hexdigest(), len(raw), entries)
