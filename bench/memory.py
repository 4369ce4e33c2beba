"""What a worker's registry takes in memory, by its size: for each grant, each route and each key."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from cold_start import resident
from figures import Row, Sizes
from processes import Process
from samples import NAME

from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Key, RateLimit, Route, Sensitivity
from snavio.domain.screening import HeldKey
from snavio.registry.sealing import Sealer
from snavio.registry.view import Registry
from snavio.wire.signing import SigningKey

SECTION = "Memory of a registry"
GRANTS_A_ROUTE, GRANTS_A_SOURCE = 20, 50
SEALED_BYTES = 12 + 32 + 16
"""Nonce, secret and tag."""


def traced(work: Callable[[], object]) -> int:
    """The bytes that are still held after some work."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return held


def put_routes(registry: Registry, count: int) -> None:
    """Routes as an operator would have them: a queue and a DLQ each, every other one limited."""
    for number in range(count):
        account = f"{number % 500:012d}"
        registry.put(
            Route(
                target=f"target-{number}",
                command=NAME,
                tenant=f"tenant-{number % 500}",
                queue_arn=f"arn:aws:sqs:us-east-1:{account}:target-{number}",
                dlq_arn=f"arn:aws:sqs:us-east-1:{account}:target-{number}-dlq",
                rate_limit=RateLimit(limit=100) if number % 2 else None,
                sensitivity=Sensitivity.LOW if number % 3 else Sensitivity.CRITICAL,
            )
        )


def put_grants(registry: Registry, count: int) -> None:
    """Grants spread evenly over sources and routes."""
    sources, routes = max(1, count // GRANTS_A_SOURCE), max(1, count // GRANTS_A_ROUTE)
    numbers = np.arange(count)
    registry.grants.load_columns(
        [f"tenant-{number % 500}/service-{number}" for number in range(sources)],
        [(f"target-{number}", NAME) for number in range(routes)],
        (numbers % sources).astype(np.uint32),
        (numbers * 7 % routes).astype(np.uint32),
        np.zeros(count, dtype=np.uint8),
        {},
    )


def put_keys(registry: Registry, count: int) -> None:
    """A key for each source, sealed."""
    for number in range(count):
        source, sealed = f"tenant-{number % 500}/service-{number}", number.to_bytes(SEALED_BYTES, "big")
        registry.put(Key(source=source, version_id="hmac-v1", sealed=sealed, created_at=1.8e9))


def opened_key_bytes(count: int) -> float:
    """What a key takes once it has been used: its two hash states are OpenSSL's, which only the system sees."""
    gc.collect()
    before = resident()
    held = {
        (f"tenant-{number}/service", "hmac-v1"): HeldKey(
            SigningKey(number.to_bytes(32, "big")), None, legacy=False
        )
        for number in range(count)
    }
    taken = resident() - before
    return taken * 2**20 / len(held)


def measure(sizes: Sizes) -> Iterator[Row]:
    """A row for each size, then one for keys in use."""
    sealer = Sealer(cast("Any", None))  # it is never asked to open one
    for grants in sizes.growth:
        routes, keys = grants // GRANTS_A_ROUTE, grants // GRANTS_A_SOURCE
        parts: list[tuple[str, int, Callable[[Registry, int], None]]] = [
            ("grant", grants, put_grants),
            ("route", routes, put_routes),
            ("key", keys, put_keys),
        ]
        total, each = 0, dict[str, float]()
        for name, count, put in parts:

            def fill(put: Callable[[Registry, int], None] = put, count: int = count) -> Registry:
                registry = Registry(TtlPolicy(), sealer)
                put(registry, count)
                return registry

            held = traced(fill)
            total += held
            each[name] = held / count
        note = ", ".join(f"{size:,.0f} bytes a {name}" for name, size in each.items())
        yield Row(
            section=SECTION,
            what=f"{grants:,} grants, {routes:,} routes, {keys:,} keys",
            value=round(total / 2**20, 2),
            unit="MB",
            note=note,
        )
    # In a process of its own: this one has memory to spare from the sections before, and would take none.
    process = Process(__file__, str(max(5_000, sizes.routes)))
    opened = float(process.line())
    process.stop()
    yield Row(
        section=SECTION,
        what="a key in use",
        value=round(opened),
        unit="bytes",
        note="besides, in shield alone: opened, with its hash states",
    )


if __name__ == "__main__":
    print(opened_key_bytes(int(sys.argv[1])), flush=True)
