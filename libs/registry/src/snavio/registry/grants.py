"""A million grants in little memory.

Sources and (target, command) pairs are numbered as they appear; a grant is one 64-bit number made of both, kept in a
sorted array with one byte beside it for its profile. A lookup is a bisection in C. Changes since the array was built lie
in a dict above it, which is folded in when it grows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeVar

import msgspec
import numpy as np

from snavio.domain.models import Grant, Sensitivity

_PROFILES: tuple[Sensitivity | None, ...] = (
    None,
    Sensitivity.CRITICAL,
    Sensitivity.MODERATE,
    Sensitivity.LOW,
)
_CODES = {profile: code for code, profile in enumerate(_PROFILES)}
_SHIFT = 32
_PAIR = (1 << _SHIFT) - 1
_FOLD_AT = 50_000
N = TypeVar("N", str, tuple[str, str])


class Columns(msgspec.Struct, frozen=True):
    """Every grant as a snapshot keeps it, by source and then by (target, command)."""

    sources: list[str]
    pairs: list[tuple[str, str]]
    source_ids: np.ndarray
    pair_ids: np.ndarray
    codes: np.ndarray
    ends: list[tuple[int, float]]
    """Which grants end by themselves, by their place, and when."""


class GrantTable:
    """Every grant of the registry, by (source, target, command)."""

    def __init__(self) -> None:
        self._sources: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        self._keys = array("Q")
        self._codes = bytearray()
        self._ends: dict[int, float] = {}
        """The few grants that end by themselves."""
        self._changed: dict[int, int | None] = {}
        """Changes since the array was built: the profile's code, or None for revoked."""

    def __len__(self) -> int:
        gone = sum(
            1 for key, code in self._changed.items() if code is None and self._position(key) is not None
        )
        new = sum(
            1 for key, code in self._changed.items() if code is not None and self._position(key) is None
        )
        return len(self._keys) + new - gone

    @property
    def nbytes(self) -> int:
        """What the array and its profiles take."""
        return len(self._keys) * self._keys.itemsize + len(self._codes)

    def load(self, grants: Iterable[Grant]) -> None:
        """Take the place of everything by these grants."""
        keys = array("Q")
        codes = bytearray()
        self._ends = {}
        for grant in grants:
            key = self._number(grant.source, grant.target, grant.command)
            keys.append(key)
            codes.append(_CODES[grant.sensitivity])
            if grant.expires_at is not None:
                self._ends[key] = grant.expires_at
        self._changed = {}
        self._build(np.frombuffer(keys, dtype=np.uint64), np.frombuffer(codes, dtype=np.uint8))

    def load_columns(
        self,
        sources: list[str],
        pairs: list[tuple[str, str]],
        source_ids: np.ndarray,
        pair_ids: np.ndarray,
        codes: np.ndarray,
        ends: dict[tuple[str, str, str], float],
    ) -> None:
        """Take the place of everything by columns, as a snapshot keeps them."""
        self._sources = {source: number for number, source in enumerate(sources)}
        self._pairs = {pair: number for number, pair in enumerate(pairs)}
        self._changed = {}
        self._ends = {self._number(*names): end for names, end in ends.items()}
        keys = (source_ids.astype(np.uint64) << np.uint64(_SHIFT)) | pair_ids.astype(np.uint64)
        self._build(keys, codes.astype(np.uint8))

    def columns(self) -> Columns:
        """Every grant, with names in order and none that no grant uses: the same grants give the same columns."""
        self._fold()
        keys = np.frombuffer(self._keys, dtype=np.uint64)
        sources, source_ids = _renumbered(list(self._sources), keys >> np.uint64(_SHIFT))
        pairs, pair_ids = _renumbered(list(self._pairs), keys & np.uint64(_PAIR))
        order = np.lexsort((pair_ids, source_ids))
        ends = [
            (place, self._ends[key])
            for place, key in enumerate(keys[order].tolist() if self._ends else ())
            if key in self._ends
        ]
        codes = np.frombuffer(self._codes, dtype=np.uint8)[order]
        return Columns(sources, pairs, source_ids[order], pair_ids[order], codes, ends)

    def put(self, grant: Grant) -> None:
        """Add a grant, or change its profile."""
        key = self._number(grant.source, grant.target, grant.command)
        self._changed[key] = _CODES[grant.sensitivity]
        if grant.expires_at is None:
            self._ends.pop(key, None)
        else:
            self._ends[key] = grant.expires_at
        self._fold_when_large()

    def revoke(self, source: str, target: str, command: str) -> None:
        """Take a grant away."""
        key = self._number(source, target, command)
        self._changed[key] = None
        self._ends.pop(key, None)
        self._fold_when_large()

    def find(
        self, source: str, target: str, command: str, now: float, otherwise: Sensitivity
    ) -> Sensitivity | None:
        """The profile of a grant, `otherwise` where it has none of its own; None where there is no grant."""
        source_number = self._sources.get(source)
        pair_number = self._pairs.get((target, command))
        if source_number is None or pair_number is None:
            return None
        key = source_number << _SHIFT | pair_number
        if self._changed and key in self._changed:
            code = self._changed[key]
            if code is None:
                return None
        else:
            position = bisect_left(self._keys, key)
            if position == len(self._keys) or self._keys[position] != key:
                return None
            code = self._codes[position]
        if self._ends and now >= self._ends.get(key, now + 1):
            return None
        return _PROFILES[code] or otherwise

    def of_source(self, source: str) -> list[tuple[str, str]]:
        """Every (target, command) the source has a grant for, ended ones included."""
        number = self._sources.get(source)
        return [] if number is None else [pair for _, pair in self._named(number, None)]

    def of_target(self, target: str) -> list[tuple[str, str]]:
        """Every (source, command) granted for the target, ended ones included."""
        places = {place for pair, place in self._pairs.items() if pair[0] == target}
        return [(source, pair[1]) for source, pair in self._named(None, places)] if places else []

    def ended(self, now: float) -> list[Grant]:
        """The grants that have ended by themselves and are still kept."""
        over = [key for key, end in self._ends.items() if now >= end]
        sources, pairs = (list(self._sources), list(self._pairs)) if over else ([], [])
        return [
            Grant(
                source=sources[key >> _SHIFT],
                target=pairs[key & _PAIR][0],
                command=pairs[key & _PAIR][1],
                sensitivity=_PROFILES[code],
                expires_at=self._ends[key],
            )
            for key in over
            if (code := self._code(key)) is not None
        ]

    def _named(self, source: int | None, pairs: set[int] | None) -> list[tuple[str, tuple[str, str]]]:
        """The grants of a source or of some pairs, by name. Looks at every one: for rare questions."""
        keys = np.frombuffer(self._keys, dtype=np.uint64)
        wanted = np.ones(len(keys), dtype=np.bool_)
        if source is not None:
            wanted &= (keys >> np.uint64(_SHIFT)) == source
        if pairs is not None:
            wanted &= np.isin(keys & np.uint64(_PAIR), list(pairs))
        standing = {int(key) for key in keys[wanted]}
        for key, code in self._changed.items():
            of_source = source is None or key >> _SHIFT == source
            if of_source and (pairs is None or key & _PAIR in pairs):
                standing.discard(key) if code is None else standing.add(key)
        sources, names = list(self._sources), list(self._pairs)
        return [(sources[key >> _SHIFT], names[key & _PAIR]) for key in sorted(standing)]

    def _number(self, source: str, target: str, command: str) -> int:
        source_number = self._sources.setdefault(source, len(self._sources))
        return source_number << _SHIFT | self._pairs.setdefault((target, command), len(self._pairs))

    def _code(self, key: int) -> int | None:
        if key in self._changed:
            return self._changed[key]
        position = self._position(key)
        return None if position is None else self._codes[position]

    def _position(self, key: int) -> int | None:
        position = bisect_left(self._keys, key)
        return position if position < len(self._keys) and self._keys[position] == key else None

    def _fold_when_large(self) -> None:
        if len(self._changed) >= max(_FOLD_AT, len(self._keys) // 10):
            self._fold()

    def _fold(self) -> None:
        if not self._changed:
            return
        changed = np.fromiter(self._changed, dtype=np.uint64, count=len(self._changed))
        keys = np.frombuffer(self._keys, dtype=np.uint64)
        kept = ~np.isin(keys, changed)
        added = [(key, code) for key, code in self._changed.items() if code is not None]
        self._changed = {}
        self._build(
            np.concatenate([keys[kept], np.array([key for key, _ in added], dtype=np.uint64)]),
            np.concatenate(
                [
                    np.frombuffer(self._codes, dtype=np.uint8)[kept],
                    np.array([code for _, code in added], dtype=np.uint8),
                ]
            ),
        )

    def _build(self, keys: np.ndarray, codes: np.ndarray) -> None:
        order = np.argsort(keys, kind="stable")
        built = array("Q")
        built.frombytes(keys[order].tobytes())
        self._keys = built
        self._codes = bytearray(codes[order].tobytes())


def _renumbered(names: list[N], numbers: np.ndarray) -> tuple[list[N], np.ndarray]:
    """The names in use, in order, and the numbers as places in that order."""
    used, places = np.unique(numbers, return_inverse=True)
    found: list[N] = [names[int(number)] for number in used]
    order = sorted(range(len(found)), key=found.__getitem__)
    rank = np.empty(len(found), dtype=np.uint32)
    rank[order] = np.arange(len(found), dtype=np.uint32)
    return [found[place] for place in order], rank[places]
