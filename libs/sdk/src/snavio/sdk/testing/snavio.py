"""An in-memory Snavio that decides like the real one.

snavio = InMemorySnavio()
snavio.register_service("acme/billing")
snavio.register_route("discord-bot", "notify-user")
snavio.grant("acme/billing", "discord-bot", "notify-user")
async with snavio.producer("acme/billing") as producer:
    await producer.send("discord-bot", "notify-user", {"user": 42})
await snavio.run(app)
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import msgspec

from snavio.domain.models import Ban, Quota, Route
from snavio.domain.screening import Validator
from snavio.sdk.batching import Accepted, PutResult
from snavio.sdk.bus import Bus
from snavio.sdk.producer import Producer, ProducerOptions
from snavio.sdk.target import Target
from snavio.sdk.telemetry import TelemetryOptions, events_in
from snavio.sdk.tenant_config import TenantConfig
from snavio.sdk.testing.dispatch import Dispatch
from snavio.sdk.testing.inbox import DeadLetter, MemoryInbox
from snavio.sdk.testing.registry import MemoryRegistry
from snavio.sdk.testing.reports import TelemetryReports
from snavio.wire.commands import Admitted, Delivered, encode
from snavio.wire.events import Event, encode_event
from snavio.wire.names import tenant_of

_GRACE_SECONDS = 7 * 24 * 3600.0


class InMemorySnavio:
    """A whole platform in one object: register, send, receive, listen. `now` may be a clock of the test's."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self.registry = MemoryRegistry()
        self._now = now
        self._events: dict[str, list[Event]] = defaultdict(list)
        self._delivered: dict[str, list[Delivered]] = defaultdict(list)
        self._queues: dict[str, MemoryInbox] = defaultdict(MemoryInbox)
        self._telemetry: dict[str, MemoryInbox] = defaultdict(MemoryInbox)
        self.dispatch = Dispatch(
            self.registry, TelemetryReports(self.registry, self._tell, self._hand_over, now), now
        )

    # Registering
    def register_service(self, source: str) -> None:
        """Register a source, `<tenant>/<service>`, with its first key."""
        self.registry.add_key(source, previous_ends_at=self._now())

    def rotate_key(self, source: str, *, grace_seconds: float = _GRACE_SECONDS) -> None:
        """Give a source a new key; the one before is accepted for so long."""
        self.registry.add_key(source, previous_ends_at=self._now() + grace_seconds)

    def register_route(
        self,
        target: str,
        command: str,
        *,
        tenant: str = "target-tenant",
        validate: Validator | None = None,
        **settings: Any,
    ) -> None:
        """Register a route. `settings` are those of the HTTP API: `rate_limit`, `dedupe_mode`, `fairness` and so on."""
        fields = {"target": target, "command": command, "tenant": tenant, "queue_arn": f"memory:{target}"}
        self.registry.routes[target, command] = msgspec.convert({**fields, **settings}, Route)
        if validate is not None:
            self.registry.validators[target, command] = validate

    def grant(self, source: str, target: str, command: str) -> None:
        """Let a source send a command."""
        self.registry.grants.add((source, target, command))

    def revoke(self, source: str, target: str, command: str) -> None:
        """Take a grant away."""
        self.registry.grants.discard((source, target, command))

    def ban(self, ban: Ban) -> None:
        """Shut a source out."""
        self.registry.bans.append(ban)

    def set_quota(self, quota: Quota) -> None:
        """Limit one source, as the platform does while it is off the warm path."""
        self.registry.quotas[quota.source, quota.target, quota.command] = quota

    # Sending
    def producer(self, source: str, *, options: ProducerOptions | None = None) -> Producer:
        """A producer for a registered source: the real one, on a bus in memory."""
        return Producer(
            "",
            "",
            source=source,
            options=options,
            now=self._now,
            origin=_Origin(self, source),
            opened=self._opened,
        )

    @asynccontextmanager
    async def _opened(self, config: TenantConfig, source: str) -> AsyncGenerator[Bus]:
        del config
        yield _MemoryBus(self.dispatch, source)

    # Receiving and listening
    def delivered(self, target: str) -> list[Delivered]:
        """Everything delivered to a target so far."""
        return list(self._delivered[target])

    async def run(self, app: Target, *, timeout: float = 10.0) -> None:
        """Let a target handle what was delivered to it, until nothing is left; `TimeoutError` when something stays.

        A handler that fails is tried again at once when the target's `retry_seconds` is 0.
        """
        inbox = self._queues[app.name]
        if not len(inbox):
            return
        inbox.let_polls_end(closing=False)
        serving = asyncio.create_task(app.serve_over(inbox, self))
        try:
            async with asyncio.timeout(timeout):
                emptied = asyncio.create_task(inbox.empty())
                try:
                    await asyncio.wait({serving, emptied}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    emptied.cancel()
        finally:
            app.drain(0)
            inbox.let_polls_end()
            await serving

    def dead(self, target: str) -> list[DeadLetter]:
        """What a target gave up, with the reasons."""
        return list(self._queues[target].dead)

    def events(self, tenant: str) -> list[Event]:
        """All telemetry of a tenant so far."""
        return list(self._events[tenant])

    def telemetry(self, tenant: str) -> AsyncGenerator[Event]:
        """A tenant's telemetry as `Telemetry` gives it."""
        return events_in(self._telemetry[tenant], TelemetryOptions())

    async def read(self, bucket: str, key: str, most_bytes: int) -> bytes:
        """A payload left behind by claim check."""
        del bucket
        return self.dispatch.objects[key][:most_bytes]

    def _tell(self, tenant: str, event: Event) -> None:
        self._events[tenant].append(event)
        self._telemetry[tenant].send(encode_event(event).decode())

    def _hand_over(self, command: Admitted, message: Delivered) -> None:
        self._delivered[command.target].append(message)
        self._queues[command.target].send(encode(message))


class _Origin:
    """The tenant's configuration, from memory."""

    def __init__(self, snavio: InMemorySnavio, source: str) -> None:
        self._snavio = snavio
        self._tenant = tenant_of(source)

    async def fetch(self) -> TenantConfig:
        """As it is now."""
        services = self._snavio.registry.services_of(self._tenant)
        return TenantConfig(tenant=self._tenant, services=services, bus="in-memory")


class _MemoryBus:
    """A bus that dispatches at once."""

    def __init__(self, dispatch: Dispatch, source: str) -> None:
        self._dispatch = dispatch
        self._source = source

    async def put(self, details: Sequence[str]) -> list[PutResult]:
        """Accept and dispatch."""
        accepted: list[PutResult] = []
        for detail in details:
            event_id = str(uuid4())
            self._dispatch.arrive(event_id, self._source, detail)
            accepted.append(Accepted(event_id))
        return accepted
