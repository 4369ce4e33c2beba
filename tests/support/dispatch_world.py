"""A whole dispatch pipeline in memory: the real handlers and stores on the fakes, with a clock that moves when told.

Workers are built by the services' own wiring. `Tripwire` makes any effect the last thing a worker does.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from snavio.aws.boto.session import Aws
from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.queues import MemoryQueues
from snavio.aws.memory.tables import MemoryTables
from snavio.aws.memory.vault import MemoryVault
from snavio.aws.values import Outgoing
from snavio.domain.models import Grant, Key, RateLimit, Route
from snavio.fast import wiring as fast_wiring
from snavio.fast.config import FastConfig
from snavio.registry.sealing import Sealer
from snavio.registry.store import RegistryStore
from snavio.runtime.background import Periodic
from snavio.runtime.logs import open_log
from snavio.runtime.outcome import Dead, Done, Outcome, Retry
from snavio.runtime.testing import RecordingTelemetry
from snavio.runtime.worker import Worker
from snavio.shield import wiring as shield_wiring
from snavio.shield.config import ShieldConfig
from snavio.slow import wiring as slow_wiring
from snavio.slow.config import SlowConfig
from snavio.wire.canonical import canonical
from snavio.wire.events import decode_event
from snavio.wire.names import Names
from snavio.wire.signing import SigningKey, framed, framed_replay
from snavio.wire.times import format_time

WIRINGS: dict[str, tuple[type, Any]] = {
    "shield": (ShieldConfig, shield_wiring.wire_on),
    "fast": (FastConfig, fast_wiring.wire_on),
    "slow": (SlowConfig, slow_wiring.wire_on),
}


class Crash(BaseException):
    """The process died here."""


class Tripwire:
    """Counts the effects that go through it, and kills the worker before or after a chosen one."""

    WRITES = frozenset({"send", "delete", "set_visibility", "put", "update", "transact", "put_batch"})

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.fatal: int | None = None
        self.after = False

    def arm(self, effect: int, *, after: bool) -> None:
        self.effects = []
        self.fatal = effect
        self.after = after

    def disarm(self) -> None:
        self.fatal = None

    def guard(self, port: Any, label: str) -> Any:
        return _Guarded(port, label, self)


class _Guarded:
    def __init__(self, port: Any, label: str, tripwire: Tripwire) -> None:
        self._port = port
        self._label = label
        self._tripwire = tripwire

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name not in Tripwire.WRITES:
            return method

        async def guarded(*args: Any, **kwargs: Any) -> Any:
            wire = self._tripwire
            fatal = wire.fatal is not None and len(wire.effects) == wire.fatal
            wire.effects.append(f"{self._label}.{name}")
            if fatal and not wire.after:
                raise Crash
            answer = await method(*args, **kwargs)
            if fatal:
                raise Crash
            return answer

        return guarded


class Handling:
    """One worker of the pipeline: its handler, its tasks and its keeper, driven by the test."""

    def __init__(self, service: str, worker: Worker, queue: str, dlq: str) -> None:
        self.service = service
        self.worker = worker
        self.queue = queue
        self.dlq = dlq
        [consumer] = worker.intakes
        self.handle = consumer._handler  # type: ignore[attr-defined]

    async def tick(self, *names: str) -> None:
        """Run the periodic tasks once, or those named."""
        for task in self.worker.tasks:
            if isinstance(task, Periodic) and (not names or task.name in names):
                await task._work()


class World:
    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock = clock or ManualClock()
        self.names = Names(region="eu-central-1")
        self.tripwire = Tripwire()
        self.queues = MemoryQueues(self.clock)
        self.tables = MemoryTables(self.clock)
        self.objects = MemoryObjects(self.names.bucket)
        self.vault = MemoryVault("alias/test")
        self.telemetry = RecordingTelemetry()
        self.store = RegistryStore(self.tables, self.names, clock=self.clock)
        self.sealer = Sealer(self.vault)
        self.secrets: dict[tuple[str, str], SigningKey] = {}
        for table in ("registry", "bans", "outbox", "stats"):
            self.tables.create(getattr(self.names, table), key=("pk", "sk"))
        self.tables.create(self.names.changelog, key=("pk", "seq"))
        for table in ("limits", "dedupe"):
            self.tables.create(getattr(self.names, table), key=("pk",))
        for queue in (self.names.ingress, self.names.fast, self.names.slow):
            dlq = self.queues.create(self.names.dlq(queue))
            self.queues.create(queue, max_receive_count=20, dead_letters=dlq)

    # Registering
    async def service(self, source: str, version_id: str = "hmac-v1", **fields: Any) -> None:
        seals = await self.store.seal_keys()
        if not seals:
            seal = await self.sealer.new_key("alias/test", self.clock())
            await self.store.put_seal_key(seal, actor="test")
            seals = [seal]
        secret = os.urandom(32)
        self.secrets[source, version_id] = SigningKey(secret)
        sealed = self.sealer.seal(secret, seal_id=seals[0].id, source=source, version_id=version_id)
        key = Key(source=source, version_id=version_id, sealed=sealed, created_at=self.clock(), **fields)
        await self.store.put_key(key, actor="test")

    async def route(self, target: str, command: str, *, tenant: str = "owner", **fields: Any) -> Route:
        queue = self.queues.create(f"target-{target}-{command}")
        if isinstance(fields.get("rate_limit"), tuple):
            fields["rate_limit"] = RateLimit(*fields["rate_limit"])
        route = Route(target=target, command=command, tenant=tenant, queue_arn=queue.arn, **fields)
        return await self.store.put_route(route, actor="test")

    async def grant(self, source: str, target: str, command: str, **fields: Any) -> None:
        await self.store.put_grant(
            Grant(source=source, target=target, command=command, **fields), actor="test"
        )

    async def revoke(self, source: str, target: str, command: str) -> None:
        await self.store.revoke_grant(source, target, command, actor="test")

    # Sending
    def command(
        self,
        source: str,
        target: str,
        name: str,
        payload: Any = None,
        *,
        version_id: str = "hmac-v1",
        **metadata: Any,
    ) -> dict[str, Any]:
        """A bus event as the ingress queue receives it, signed."""
        command_id = metadata.pop("id", None) or str(uuid.uuid4())
        timestamp = metadata.pop("timestamp", None) or format_time(self.clock())
        key = self.secrets.get((metadata.pop("signed_by", source), version_id)) or SigningKey(b"?")
        frame = framed(version_id, command_id, timestamp, target, name)
        signed = framed_replay(source, frame) if metadata.get("replayed") else frame
        signature = key.sign(signed, canonical(payload))
        detail = {
            "metadata": {
                "id": command_id,
                "timestamp": timestamp,
                "type": "snavio.command-sent",
                "version_id": version_id,
                "hmac": signature,
                **metadata,
            },
            "command": {"target": target, "name": name, "payload": payload},
        }
        return {"version": "0", "source": source, "detail-type": "snavio.command-sent", "detail": detail}

    async def put(self, *events: dict[str, Any] | str) -> None:
        """Let events arrive on ingress."""
        url = self.queue(self.names.ingress)
        for event in events:
            body = event if isinstance(event, str) else msgspec.json.encode(event).decode()
            await self.queues.send(url, [Outgoing(body)])

    async def send(self, source: str, target: str, name: str, payload: Any = None, **metadata: Any) -> str:
        event = self.command(source, target, name, payload, **metadata)
        await self.put(event)
        return event["detail"]["metadata"]["id"]

    # Workers
    def aws(self) -> Aws:
        guard = self.tripwire.guard

        async def no_client(service: str) -> Any:
            raise AssertionError(f"nobody should ask for a raw {service} client here")

        return Aws(
            queues=guard(self.queues, "queues"),
            tables=guard(self.tables, "tables"),
            objects=guard(self.objects, "objects"),
            vault=guard(self.vault, "vault"),
            client=no_client,
            region=self.names.region,
        )

    async def start(self, service: str, **settings: Any) -> Handling:
        """A new worker with a warm registry."""
        config_type, wire_on = WIRINGS[service]
        config = config_type(region=self.names.region, ttl_jitter=0.0, **settings)
        worker_id = f"{service}-{uuid.uuid4().hex[:8]}"
        log = open_log(
            service=service, worker_id=worker_id, level="error", log_format="json", stream=io.StringIO()
        )
        worker = Worker(
            service,
            config,
            worker_id=worker_id,
            log=log,
            telemetry=self.telemetry,
            now=self.clock,
            roll=lambda: 0.5,
        )
        wire_on(self.aws(), config, worker)
        queue = {"shield": self.names.ingress, "fast": self.names.fast, "slow": self.names.slow}[service]
        handling = Handling(service, worker, self.queue(queue), self.queue(self.names.dlq(queue)))
        await handling.tick("refresh-registry")
        return handling

    async def step(self, handling: Handling) -> int:
        """Let a worker handle one batch; how many messages it took."""
        batch = await self.queues.receive(handling.queue, wait_seconds=0)
        if not batch:
            return 0
        outcomes = await handling.handle(batch)
        assert len(outcomes) == len(batch)
        for message, outcome in zip(batch, outcomes, strict=True):
            await self._perform(handling, message.receipt, message.body, outcome)
        return len(batch)

    async def _perform(self, handling: Handling, receipt: str, body: str, outcome: Outcome) -> None:
        match outcome:
            case Done():
                await self.queues.delete(handling.queue, [receipt])
            case Dead():
                await self.queues.send(handling.dlq, [Outgoing(body)])
                await self.queues.delete(handling.queue, [receipt])
            case Retry():
                seconds = 1 if outcome.after_seconds is None else max(0, round(outcome.after_seconds))
                await self.queues.set_visibility(handling.queue, [(receipt, seconds)])

    async def pump(self, *handlings: Handling, patience: float = 0.0) -> None:
        """Let workers work until their queues are empty; with patience, also what returns within so many seconds."""
        waited = 0.0
        while True:
            worked = 0
            for handling in handlings:
                worked += await self.step(handling)
                await handling.tick("record-notices")
            if worked:
                continue
            if waited >= patience:
                return
            self.clock.advance(1.0)
            waited += 1.0
            for handling in handlings:
                await handling.tick()

    # Looking
    def queue(self, name: str) -> str:
        return self.queues.url_of(self.names.queue_arn(name))

    def bodies(self, name: str) -> list[str]:
        return self.queues.queues[self.queue(name)].bodies()

    def delivered(self, target: str, command: str) -> list[dict[str, Any]]:
        """What lies in a target's queue."""
        return [msgspec.json.decode(body) for body in self.bodies(f"target-{target}-{command}")]

    def events(self, kind: str | None = None) -> list[Any]:
        """What tenants and operators were told, in the order of writing."""
        rows = self.tables.tables[self.names.outbox].items.values()
        found = [decode_event(str(row["body"])) for row in rows if kind is None or row["event_type"] == kind]
        return sorted(found, key=lambda event: event.emitted_at)
