"""What the platform does for the registry by itself: rotates keys, warns of their end, clears what is over.

What is due is decided from the leader's own registry, by pure functions; each change is made only if it still applies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec

from snavio.control.keys import KeyPolicy, Keys, in_order
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.domain.models import Ban, Grant, Key, Route
from snavio.domain.screening import REPLAYER
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.registry.view import Registry
from snavio.replay.replay_keys import ensure_replay_key
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import Log
from snavio.wire.events import Event, KeyExpiryImminent, derived_id
from snavio.wire.names import PLATFORM_TENANT, Names, tenant_of
from snavio.wire.times import format_time

ACTOR = "snavio:monitor"
_DAY = 24 * 3600.0


class UpkeepPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of upkeep."""

    keys: KeyPolicy = KeyPolicy()
    warn_seconds: float = _DAY
    """How long before a key ends its producer is warned, if it has not fetched the next."""
    linger_seconds: float = 60.0
    """How long what is over stays, so that nothing ends twice by clocks a little apart."""


class Upkeep:
    """One round after another, each complete in itself."""

    def __init__(
        self,
        store: RegistryStore,
        sealer: Sealer,
        names: Names,
        outbox: OutboxWriter,
        policy: UpkeepPolicy,
        *,
        clock: Callable[[], float],
        log: Log,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._names = names
        self._keys = Keys(store, sealer, names, policy.keys, clock=clock)
        self._outbox = outbox
        self._policy = policy
        self._clock = clock
        self._log = log
        self._warned: set[str] = set()

    async def round(self, registry: Registry) -> None:
        """Do what is due by this registry."""
        now = self._clock()
        held = keys_by_source(registry)
        if not registry.knows_source(REPLAYER):
            await ensure_replay_key(self._store, self._sealer, self._names, clock=self._clock, actor=ACTOR)
        for source in await self._keys.rotate_due(due_for_rotation(held, now, self._policy.keys)):
            self._log.info(LogEvent.KEY_ROTATED, source=source)
        warnings = [
            event
            for event in expiry_warnings(held, now, self._policy.warn_seconds)
            if event.event_id not in self._warned
        ]
        await self._outbox.write(warnings)
        self._warned |= {event.event_id for event in warnings}
        for entry in what_is_over(registry, now - self._policy.linger_seconds):
            await self._store.remove_if_same(entry, actor=ACTOR, note="it was over")


def keys_by_source(registry: Registry) -> dict[str, list[Key]]:
    """Every producer's keys, oldest first. The platform's own are not on this schedule."""
    found: dict[str, list[Key]] = defaultdict(list)
    for entry in registry.entries():
        if isinstance(entry, Key) and tenant_of(entry.source) != PLATFORM_TENANT:
            found[entry.source].append(entry)
    return {source: in_order(keys) for source, keys in found.items()}


def due_for_rotation(held: dict[str, list[Key]], now: float, policy: KeyPolicy) -> list[str]:
    """The sources whose key has served its time, or whose last rotation was left half done."""
    return [
        source
        for source, keys in held.items()
        if now - keys[-1].created_at >= policy.rotate_seconds
        or any(key.not_after is None for key in keys[:-1])
    ]


def expiry_warnings(held: dict[str, list[Key]], now: float, warn_seconds: float) -> list[Event]:
    """One event a key and day, for producers that have not fetched what comes after a key about to end."""
    return [
        KeyExpiryImminent(
            event_id=derived_id("key-expiry", source, key.version_id, str(int(now // _DAY))),
            tenant=tenant_of(source),
            emitted_at=format_time(now),
            version_id=key.version_id,
            source=source,
            time_of_last_config_poll=msgspec.UNSET if polled is None else format_time(polled),
        )
        for source, keys in held.items()
        for key in keys[:-1]
        if key.not_after is not None and now < key.not_after <= now + warn_seconds
        if (polled := _polled(keys)) is None or polled < keys[-1].created_at
    ]


def what_is_over(registry: Registry, moment: float) -> list[Route | Ban | Grant]:
    """Ephemeral routes, bans and grants that had ended by this moment."""
    over: list[Route | Ban | Grant] = [
        entry
        for entry in registry.entries()
        if (isinstance(entry, Route) and entry.expires_at is not None and entry.expires_at <= moment)
        or (isinstance(entry, Ban) and entry.until is not None and entry.until <= moment)
    ]
    return over + registry.grants.ended(moment)


def _polled(keys: list[Key]) -> float | None:
    return max((key.last_poll_at for key in keys if key.last_poll_at is not None), default=None)
