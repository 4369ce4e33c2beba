"""What can be seen of a run from outside: what was put, what targets received, what was told, what stood in the registry.

Checkers know this and nothing else. Times are true ones, which no worker knows.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import msgspec

from snavio.domain.models import Ban, DispatchMode, Grant, Key, Quota, Route, Settings
from snavio.registry.rows import RowKey
from snavio.runtime.testing import EPOCH

OPERATOR = "operator"
"""Who changes the registry from outside."""


@dataclass(slots=True)
class Sent:
    """One message put on the bus."""

    kind: str
    """What the workload meant by it: `valid`, `forged`, `malformed`, …"""
    body: str
    source: str = ""
    target: str = ""
    command: str = ""
    id: str = ""
    version_id: str = ""
    timestamp: float = 0.0
    payload: Any = None
    replay: bool = False
    authentic: bool = True
    """Signed, over exactly what it says, with the secret its version names."""
    arrived_at: float = 0.0
    message_id: str = ""


@dataclass(slots=True)
class Delivery:
    """One message in a target's queue."""

    at: float
    decided_from: float
    """The earliest that its worker can have decided on it: it had not received it before."""
    decided_by: float
    """When its worker began to send it: it had decided by then."""
    worker: str
    queue: str
    body: dict[str, Any]
    left: bytes | None = None
    """What lay, as it was delivered, where it says that its payload was left."""

    metadata: dict[str, Any] = field(init=False)
    command: dict[str, Any] = field(init=False)
    pair: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.metadata, self.command = self.body["metadata"], self.body["command"]
        self.pair = self.command["target"], self.command["name"]

    @property
    def marked(self) -> bool:
        return bool(self.metadata.get("possible_duplicate"))

    @property
    def path(self) -> str:
        return self.metadata["path"]

    def __str__(self) -> str:
        target, name = self.pair
        marked = ", marked" if self.marked else ""
        return (
            f"{self.metadata['id'][:8]} of {self.command['source']} to {target} {name}, "
            f"delivered by {self.worker} at {self.at - EPOCH:.3f} ({self.path}{marked})"
        )


@dataclass(slots=True)
class Taken:
    """A message with a command that a fast or slow worker received."""

    at: float
    worker: str
    message_id: str
    count: int
    """How often it had been received by then, by whomever."""
    id: str
    source: str
    pair: tuple[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.source

    @property
    def is_slow(self) -> bool:
        return self.worker.startswith("slow-")


@dataclass(slots=True)
class Passed:
    """A message of shield's in the fast queue."""

    message_id: str
    id: str
    source: str
    received_at: float
    """When what shield received had arrived, as it says."""

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.source


@dataclass(slots=True)
class Deleted:
    """A message that a worker deleted."""

    at: float
    worker: str
    message_id: str


@dataclass(slots=True)
class Buried:
    """A message that a worker put in a dead-letter queue."""

    at: float
    service: str
    body: str


@dataclass(slots=True)
class Escalation:
    """A message of fast's in the slow queue."""

    at: float
    worker: str
    message_id: str
    body_text: str

    body: dict[str, Any] = field(init=False)
    id: str = field(init=False)
    source: str = field(init=False)
    pair: tuple[str, str] = field(init=False)
    reason: str = field(init=False)
    said_at: float = field(init=False)
    """When its worker decided on it, by that worker's clock."""
    ban_id: str | None = field(init=False)
    """The warm-path ban of the worker's own that it met."""
    ban_opened_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.body = msgspec.json.decode(self.body_text)
        command, ban = self.body["command"], self.body.get("dominance") or {}
        self.id, self.source = command["id"], command["source"]
        self.pair = command["target"], command["name"]
        self.reason, self.said_at = self.body["reason"], self.body["escalated_at"]
        self.ban_id, self.ban_opened_at = ban.get("ban_id"), ban.get("opened_at", 0.0)

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.source


@dataclass(slots=True)
class BanPlaced:
    """A ban as it was written to the registry."""

    at: float
    actor: str
    ban: Ban


@dataclass(slots=True)
class Written:
    """An event as it was written to the outbox."""

    at: float
    worker: str
    event: dict[str, Any]


class State:
    """The registry at one moment."""

    def __init__(self, entries: dict[RowKey, Any]) -> None:
        self.entries = entries

    def route(self, target: str, command: str) -> Route | None:
        return self.entries.get((f"route#{target}", command))

    def grant(self, source: str, target: str, command: str) -> Grant | None:
        return self.entries.get((f"grant#{target}#{command}", source))

    def key(self, source: str, version_id: str) -> Key | None:
        return self.entries.get((f"key#{source}", version_id))

    def quota(self, source: str, target: str, command: str) -> Quota | None:
        return self.entries.get((f"quota#{source}", f"{target}#{command}"))

    def knows(self, source: str) -> bool:
        return any(pk == f"key#{source}" for pk, _ in self.entries)

    def bans(self, source: str) -> list[Ban]:
        return [entry for (pk, _), entry in self.entries.items() if pk == f"ban#{source}"]

    def cold_only(self) -> bool:
        settings: Settings | None = self.entries.get(("settings", "platform"))
        return settings is not None and settings.dispatch_mode is DispatchMode.COLD_ONLY


@dataclass
class RegistryHistory:
    """Every state the registry was in, with the moment from which it was."""

    times: list[float] = field(default_factory=lambda: [0.0])
    states: list[State] = field(default_factory=lambda: [State({})])

    def note(self, at: float, key: RowKey, entry: Any) -> None:
        entries = dict(self.states[-1].entries)
        if entry is None:
            entries.pop(key, None)
        else:
            entries[key] = entry
        self.times.append(at)
        self.states.append(State(entries))

    def at(self, moment: float) -> State:
        return self.states[bisect_right(self.times, moment) - 1]

    def between(self, low: float, high: float) -> list[State]:
        """Every state that was in force at some moment of the interval."""
        first = max(0, bisect_right(self.times, low) - 1)
        return self.states[first : bisect_right(self.times, high)]


@dataclass
class History:
    """A whole run."""

    settings: Any
    sent: list[Sent] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    """The ARNs of the queues there are. None is ever removed."""
    taken: list[Taken] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    deleted: list[Deleted] = field(default_factory=list)
    buried: list[Buried] = field(default_factory=list)
    escalations: list[Escalation] = field(default_factory=list)
    bans: list[BanPlaced] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    registry: RegistryHistory = field(default_factory=RegistryHistory)
    reads: dict[str, list[float]] = field(default_factory=dict)
    """For each worker, when the reads of the changelog that it got every answer to were begun."""
    dead_letters: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """What was still in a queue of the platform's long after every fault had ended."""
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """The events that were in the outbox at any time."""
    unpublished: list[str] = field(default_factory=list)
    """The ids of those still in it long after every fault had ended."""
    published: list[tuple[str, str]] = field(default_factory=list)
    """What the tenants' topics were given, in order: the tenant and the event."""
    crashed: set[str] = field(default_factory=set)
    """Workers that died without a word."""
    unflushed: set[str] = field(default_factory=set)
    """Workers that were told to stop and, as they said, could not save everything in time."""
    broken: list[str] = field(default_factory=list)
    """What workers should never do: handlers that raised, workers that ended by themselves."""
    trace: list[tuple[Any, ...]] = field(default_factory=list)

    def may_be_silent(self, worker: str) -> bool:
        """Whether what a worker had still to tell may have ended with it."""
        return worker in self.crashed or worker in self.unflushed
