"""Keeping a worker's registry current: one full load at the start, then one small query at a time.

A refresh asks the changelog for everything after the last number seen. The query is strongly consistent, so when it has
been answered the whole registry is known to be current as of the moment the query began, however large it is.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Protocol

import anyio
import msgspec

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Tables
from snavio.domain.freshness import TtlPolicy
from snavio.registry.changelog import Change
from snavio.registry.rows import Entry, MalformedRowError, decode_row
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.registry.view import Registry
from snavio.wire.names import Names


class Snapshots(Protocol):
    """Where a registry can be had at once, without reading every row."""

    async def load_into(self, registry: Registry) -> bool:
        """Fill an empty registry, with its number and the moment it stands for; False when none is fit for use."""
        ...


class KeeperObserver(Protocol):
    """Who is told how the registry is doing."""

    def loaded(self, *, entries: int, malformed: int, seconds: float, from_snapshot: bool) -> None:
        """The registry was loaded whole."""
        ...

    def refreshed(self, *, changes: int, age_before: float, seconds: float) -> None:
        """The registry was brought up to date."""
        ...

    def refresh_failed(self, error: SnavioError) -> None:
        """It could not be; what is remembered goes on ageing."""
        ...


class LogGapError(SnavioError):
    """The changelog no longer reaches back to where this worker stopped reading."""


class Keeper:
    """Owns the registry of one worker. `registry` may be replaced by a reload: ask for it anew for every batch.

    Without a sealer it keeps no keys: only who verifies signatures may open secrets.
    """

    def __init__(
        self,
        tables: Tables,
        names: Names,
        sealer: Sealer | None,
        *,
        ttls: TtlPolicy,
        clock: Callable[[], float],
        observer: KeeperObserver,
        snapshots: Snapshots | None = None,
        segments: int = 4,
    ) -> None:
        self._tables = tables
        self._names = names
        self._sealer = sealer
        self._ttls = ttls
        self._clock = clock
        self._observer = observer
        self._snapshots = snapshots
        self._segments = segments
        self._store = RegistryStore(tables, names, clock=clock)
        self._refreshing = anyio.Lock()
        self._on_revoked: list[Callable[[list[Change]], None]] = []
        self.registry = Registry(ttls, sealer)

    @property
    def loaded(self) -> bool:
        """Whether there is a registry to decide by."""
        return self.registry.as_of > 0

    def on_revoked(self, listener: Callable[[list[Change]], None]) -> None:
        """Call the listener with the grants each refresh found revoked, before the moment of the refresh counts."""
        self._on_revoked.append(listener)

    async def load(self) -> None:
        """Load everything: from a snapshot where one is fit, else from the table in parallel segments."""
        started = self._clock()
        registry = Registry(self._ttls, self._sealer)
        malformed = 0
        entries = 0
        from_snapshot = self._snapshots is not None and await self._snapshots.load_into(registry)
        if not from_snapshot:
            # The number is read first: what changes during the scan is read again from the log.
            registry.seq = await self._store.last_seq()
            rows, malformed = await self._scan()
            entries = len(rows)
            registry.load(rows)
        await self._catch_up(registry, silent=True)
        self.registry = registry
        # Millions of long-lived objects: the collector need not look at them again.
        gc.collect()
        gc.freeze()
        self._observer.loaded(
            entries=entries, malformed=malformed, seconds=self._clock() - started, from_snapshot=from_snapshot
        )

    async def refresh(self) -> bool:
        """Bring the registry up to date; False when that failed. Concurrent callers share one query."""
        return await self.refresh_since(self._clock())

    async def refresh_since(self, moment: float) -> bool:
        """Make sure the registry has been read since this moment."""
        async with self._refreshing:
            if self.registry.as_of > moment:
                return True
            started = self._clock()
            age = started - self.registry.as_of
            try:
                if self.loaded:
                    changes = await self._catch_up(self.registry, silent=False)
                else:
                    await self.load()
                    changes = 0
            except LogGapError:
                return await self._reload()
            except (SnavioError, msgspec.ValidationError) as error:
                self._observer.refresh_failed(
                    error if isinstance(error, SnavioError) else SnavioError(str(error))
                )
                return False
            self._observer.refreshed(changes=changes, age_before=age, seconds=self._clock() - started)
            return True

    async def _reload(self) -> bool:
        try:
            await self.load()
        except SnavioError as error:
            self._observer.refresh_failed(error)
            return False
        return True

    async def _catch_up(self, registry: Registry, *, silent: bool) -> int:
        started = self._clock()
        changes = await self._store.changes(after=registry.seq)
        revocations: list[Change] = []
        for change in changes:
            if change.seq != registry.seq + 1:
                raise LogGapError(f"change {registry.seq + 1} is missing from the changelog")
            self._apply(registry, change)
            registry.seq = change.seq
            if change.kind == "grant" and change.after is None:
                revocations.append(change)
        if self._sealer is not None:
            for seal in registry.seals.values():
                await self._sealer.open(seal)
        if revocations and not silent:
            for listener in self._on_revoked:
                listener(revocations)
        registry.as_of = started
        return len(changes)

    def _apply(self, registry: Registry, change: Change) -> None:
        try:
            entry = change.entry()
        except MalformedRowError:
            # Fail closed: an entry that cannot be read is no entry.
            entry = None
        if entry is None:
            registry.remove(change.key)
        else:
            registry.put(entry)

    async def _scan(self) -> tuple[list[Entry], int]:
        rows: list[Entry] = []
        malformed = 0

        async def read(segment: int) -> None:
            nonlocal malformed
            async for page in self._tables.scan(
                self._names.registry, segment=segment, segments=self._segments
            ):
                for item in page:
                    try:
                        rows.append(decode_row(item))
                    except MalformedRowError:
                        malformed += 1

        try:
            async with anyio.create_task_group() as group:
                for segment in range(self._segments):
                    group.start_soon(read, segment)
        except* SnavioError as failures:
            # The callers' concern is that it failed, not in how many segments.
            raise failures.exceptions[0] from None
        return rows, malformed
