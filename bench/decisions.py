"""What a decision costs: shield's and fast's, beside the floor of the same run, and as the registry grows.

    make bench

Each row is CPU time in this process, the best of many rounds. Compare rows of one run with each other, not with
another machine's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import sys
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from snavio.dispatch.reports import delivered_event
from snavio.dispatch.targets import target_message
from snavio.domain.dedupe import SeenIds
from snavio.domain.fairness import FairnessWindows
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import DispatchMode, RateLimit, Route, Sensitivity
from snavio.domain.screening import HeldKey, ScreeningPolicy, screen
from snavio.domain.warm import decide_warm
from snavio.registry.view import Registry
from snavio.wire.canonical import canonical
from snavio.wire.commands import Admitted, BusEvent, decode_admitted, encode
from snavio.wire.outbox import outbox_row
from snavio.wire.signing import SigningKey, framed
from snavio.wire.times import format_time

NOW = 1_800_000_000.0
SOURCE, TARGET, NAME = "tenant-1/service-1", "target-1", "notify-user"
ROUNDS, REPEATS = 2_000, 15
SECRET = b"k" * 32
PAYLOAD = {"user": 42, "text": "a message of ordinary length " * 8, "tags": ["a", "b", "c"], "n": 1.5}


def microseconds(work: Callable[[], object]) -> float:
    """The CPU time of one call: the best of many rounds, since everything else on a machine only ever adds."""
    work()
    samples: list[float] = []
    for _ in range(REPEATS):
        started = time.process_time_ns()
        for _ in range(ROUNDS):
            work()
        samples.append((time.process_time_ns() - started) / ROUNDS / 1000)
    return min(samples)


class Keys:
    """A registry for screening with one key in it."""

    def __init__(self) -> None:
        self._key = HeldKey(SigningKey(SECRET), None, legacy=False)

    def knows_source(self, source: str) -> bool:
        return True

    def key(self, source: str, version_id: str) -> HeldKey:
        return self._key

    def ban_mode(self, source: str, now: float) -> None:
        """Nobody is banned."""

    def validator(self, target: str, command: str, now: float) -> None:
        """No schema."""


class Local:
    """A fast worker's memory, with nothing in the way."""

    def __init__(self) -> None:
        self.windows = FairnessWindows("bench")
        self.seen = SeenIds(remember_seconds=300)

    def seen_by(self, command: Admitted, now: float) -> str | None:
        return self.seen.find(command.id, now)

    def local_ban(self, command: Admitted, now: float) -> Any:
        return self.windows.ban((command.target, command.name), command.source, now)

    def take_unit(self, route: Route, now: float) -> bool:
        return True


def bus_event(*, as_the_bus_writes_it: bool) -> str:
    """A signed command in its envelope; its payload canonical, or serialised anew by the bus."""
    command_id, timestamp = str(uuid.uuid4()), format_time(NOW)
    signature = SigningKey(SECRET).sign(
        framed("hmac-v1", command_id, timestamp, TARGET, NAME), canonical(PAYLOAD)
    )
    payload = json.dumps(PAYLOAD) if as_the_bus_writes_it else canonical(PAYLOAD).decode()
    detail = {
        "metadata": {"id": command_id, "timestamp": timestamp, "type": "snavio.command-sent", "version_id": "hmac-v1", "hmac": signature},
        "command": {"target": TARGET, "name": NAME, "payload": "HERE"},
    }  # fmt: skip
    envelope = {"version": "0", "id": str(uuid.uuid4()), "detail-type": "snavio.command-sent", "source": SOURCE, "account": "123456789012", "time": timestamp, "region": "us-east-1", "resources": [], "detail": detail}  # fmt: skip
    return json.dumps(envelope).replace('"HERE"', payload)


def registry(grants: int) -> Registry:
    """A registry with so many grants, one in fifty of them a route."""
    found = Registry(TtlPolicy(), None)
    found.as_of = NOW
    pairs = [(f"target-{n}", NAME) for n in range(max(2, min(50_000, grants // 20)))]
    sources = [f"tenant-{n // 10}/service-{n % 10}" for n in range(-(-grants // len(pairs)) + 12)]
    for target, command in pairs:
        found.put(
            Route(target=target, command=command, tenant="owner", queue_arn="arn:aws:sqs:us-east-1:1:q")
        )
    numbers = np.arange(grants)
    found.grants.load_columns(
        sources, pairs, numbers // len(pairs), numbers % len(pairs), np.zeros(grants), {}
    )
    return found


def floor_screening(body: str) -> Callable[[], object]:
    """The least that shield has to do: decode, two hashes, a timestamp, three lookups, encode."""
    decode = msgspec.json.Decoder(BusEvent).decode
    inner, outer = hashlib.sha256(b"i" * 64), hashlib.sha256(b"o" * 64)
    known = {(SOURCE, "hmac-v1"): 1}

    def work() -> str:
        event = decode(body)
        metadata, command = event.detail.metadata, event.detail.command
        first = inner.copy()
        first.update(b"x" * 120)
        first.update(bytes(command.payload))
        second = outer.copy()
        second.update(first.digest())
        second.hexdigest()
        datetime.fromisoformat(metadata.timestamp).timestamp()
        known[event.source, metadata.version_id]
        return encode(
            Admitted(
                event.source,
                metadata.id,
                metadata.timestamp,
                command.target,
                command.name,
                NOW,
                command.payload,
            )
        )

    return work


def usual_screening(body: str) -> Callable[[], object]:
    """The same job as it is usually written: json, hmac, json."""

    def work() -> str:
        event = json.loads(body)
        metadata, command = event["detail"]["metadata"], event["detail"]["command"]
        payload = json.dumps(command["payload"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        message = "\n".join(
            [
                "SNAVIO1",
                metadata["version_id"],
                metadata["id"],
                metadata["timestamp"],
                command["target"],
                command["name"],
                payload,
            ]
        )
        hmac.compare_digest(hmac.new(SECRET, message.encode(), hashlib.sha256).hexdigest(), metadata["hmac"])
        datetime.fromisoformat(metadata["timestamp"]).timestamp()
        return json.dumps({"source": event["source"], **metadata, **command})

    return work


def main() -> None:
    """Measure, print a table, and leave the figures as JSON."""
    rows: list[tuple[str, float, float | None]] = []
    body, rewritten = bus_event(as_the_bus_writes_it=False), bus_event(as_the_bus_writes_it=True)
    keys, policy = Keys(), ScreeningPolicy()

    def shield(text: str) -> Callable[[], object]:
        def work() -> str:
            return encode(screen(text, NOW, keys, policy).command)  # type: ignore[union-attr, arg-type]

        return work

    floor = microseconds(floor_screening(body))
    rows.append(("shield: the floor (decode, hash, look up, encode)", floor, None))
    rows.append(("shield: screen and pass on", microseconds(shield(body)), floor))
    rows.append(
        ("shield: the same, payload serialised anew by the bus", microseconds(shield(rewritten)), floor)
    )
    rows.append(("shield: the usual way (json, hmac, json)", microseconds(usual_screening(body)), floor))

    local = Local()
    internal = encode(screen(body, NOW, keys, policy).command)  # type: ignore[union-attr, arg-type]
    at_text = format_time(NOW)
    smallest: float | None = None
    for size in (1_000, 10_000, 100_000, 1_000_000):
        known = registry(size)

        def decide(known: Registry = known) -> object:
            return decide_warm(decode_admitted(internal), "m", known, local, DispatchMode.ADAPTIVE, NOW)

        cost = microseconds(decide)
        smallest = smallest or cost
        rows.append((f"fast: decode and decide, {size:,} grants", cost, smallest))
        names = [
            (f"tenant-{n // 10}/service-{n % 10}", f"target-{n}")
            for n in random.sample(range(size // 25), 30)
        ]

        def look(known: Registry = known, names: list[tuple[str, str]] = names) -> None:
            for source, target in names:
                known.grants.find(source, target, NAME, NOW, Sensitivity.LOW)

        rows.append((f"fast: one grant looked up at random, {size:,} grants", microseconds(look) / 30, None))
    command = decode_admitted(internal)

    def rest() -> object:
        target_message(command, path="fast", at_text=at_text)
        event = delivered_event(command, "message-id", path="fast", at=NOW, at_text=at_text)
        return outbox_row(event, NOW)

    rows.append(("fast: message for the target, event and outbox row", microseconds(rest), None))
    limit = RateLimit(1_000_000, 1)
    rows.append(("fast: fairness window", microseconds(lambda: local.windows.record((TARGET, NAME), SOURCE, Route(target=TARGET, command=NAME, tenant="o", queue_arn="q", rate_limit=limit).fairness, NOW)), None))  # fmt: skip
    show(rows)
    if len(sys.argv) > 1:
        figures = [
            {"what": what, "microseconds": round(cost, 3), "ratio": round(cost / base, 3) if base else None}
            for what, cost, base in rows
        ]
        Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(sys.argv[1]).write_text(json.dumps({"python": sys.version, "rows": figures}, indent=1) + "\n")


def show(rows: list[tuple[str, float, float | None]]) -> None:
    """The table."""
    table = Table(title="Cost of decisions, CPU", title_justify="left")
    table.add_column("what")
    table.add_column("µs", justify="right")
    table.add_column("× the first of its kind", justify="right")
    for what, cost, base in rows:
        table.add_row(what, f"{cost:.2f}", f"{cost / base:.2f}" if base else "")
    Console().print(table)


if __name__ == "__main__":
    main()
