"""A cold start from a snapshot and the refresh after it: a million grants and 50,000 routes, in a process of its own.

    python bench/cold_start.py <stock file>

Objects and tables are in memory: what is measured is checking, inflating, parsing and building, not S3 and DynamoDB.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from figures import Row, Sizes
from processes import Process
from stock import NAMES, Shape, Stock, stock_of

from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.tables import MemoryTables
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Grant
from snavio.registry.keeper import Keeper
from snavio.registry.snapshots import SnapshotPolicy, SnapshotReader
from snavio.registry.store import RegistryStore

SECTION = "Registry"
STARTS, REFRESHES = 3, 21


class PublicKey:
    """The half of the key a reader has."""

    def __init__(self, public: bytes) -> None:
        self._public = public

    async def public_key(self) -> bytes:
        return self._public


class Silent:
    """Observes nothing but refusals, which would make the figures worthless."""

    def loaded(self, **facts: Any) -> None:
        if not facts["from_snapshot"]:
            raise SystemExit("the snapshot was not used")

    def refreshed(self, **facts: Any) -> None:
        """Nothing to tell."""

    def refresh_failed(self, error: Exception) -> None:
        raise error

    def snapshot_loaded(self, pointer: object) -> None:
        """Nothing to tell."""

    def snapshot_refused(self, kind: str, reason: str, detail: str) -> None:
        raise SystemExit(f"{kind}: {reason}: {detail}")


class CountingTables(MemoryTables):
    """Counts the queries made."""

    queries = 0

    async def query(self, *arguments: Any, **options: Any) -> Any:
        self.queries += 1
        return await super().query(*arguments, **options)


def resident() -> float:
    """Megabytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def load(stock: Stock) -> dict[str, float]:
    """In a fresh process: start cold, then read one change at a time."""
    objects = MemoryObjects(NAMES.bucket)
    for path, body in stock.objects.items():
        await objects.put(NAMES.bucket, path.removeprefix(f"/{NAMES.bucket}/"), body)
    tables = CountingTables(time.time)
    tables.create(NAMES.registry, key=("pk", "sk"))
    tables.create(NAMES.changelog, key=("pk", "seq"))
    keys, policy = PublicKey(stock.public_key), SnapshotPolicy()
    reader = SnapshotReader(objects, tables, NAMES, keys, policy, clock=time.time, observer=Silent())
    keeper = Keeper(
        tables, NAMES, None, ttls=TtlPolicy(), clock=time.time, observer=Silent(), snapshots=reader
    )
    gc.collect()
    idle, started = resident(), time.perf_counter()
    await keeper.load()
    seconds = time.perf_counter() - started
    gc.collect()
    held = resident()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store = RegistryStore(tables, NAMES, clock=time.time)
    costs: list[float] = []
    for number in range(REFRESHES):
        grant = Grant(source=f"tenant-0/late-{number}", target="target-0", command="notify-user")
        await store.put_grant(grant, actor="bench")
        tables.queries = 0
        before = time.process_time()
        await keeper.refresh()
        costs.append(time.process_time() - before)
    return {
        "grants": len(keeper.registry.grants) - REFRESHES,
        "routes": len(keeper.registry.routes),
        "seconds": seconds,
        "megabytes": held - idle,
        "peak": peak - idle,
        "refresh_ms": statistics.median(costs) * 1000,
        "queries": tables.queries,
    }


def measure(sizes: Sizes) -> Iterator[Row]:
    """Start cold a few times, each time in a process of its own."""
    shape = Shape(sources=sizes.grants // sizes.routes, routes=sizes.routes, commands=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stock"
        path.write_bytes(msgspec.msgpack.encode(asyncio.run(stock_of(shape))))
        runs: list[dict[str, float]] = []
        for _ in range(STARTS):
            process = Process(__file__, str(path))
            runs.append(json.loads(process.line()))
            process.stop()
    found = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    size = f"{found['grants']:,.0f} grants and {found['routes']:,.0f} routes"

    def row(
        what: str, value: float, unit: str, target: str = "", *, met: bool | None = None, note: str = ""
    ) -> Row:
        return Row(
            section=SECTION, what=what, value=round(value, 2), unit=unit, target=target, met=met, note=note
        )

    seconds, megabytes, milliseconds = found["seconds"], found["megabytes"], found["refresh_ms"]
    yield row(
        f"cold start, {size}",
        seconds,
        "s",
        "< 1.5 s",
        met=seconds < 1.5,
        note="from the first byte asked for",
    )
    note = f"{found['peak']:.0f} MB at its peak"
    yield row("cold start: memory over idle", megabytes, "MB", "< 150 MB", met=megabytes < 150, note=note)
    met = milliseconds < 5 and found["queries"] == 1
    note = f"{found['queries']:.0f} query; the table is in memory too"
    yield row(
        "refresh of one change among them: CPU", milliseconds, "ms", "one query, < 5 ms", met=met, note=note
    )


if __name__ == "__main__":
    read = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Stock)
    print(json.dumps(asyncio.run(load(read))), flush=True)
