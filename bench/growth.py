"""How the cost of a message grows: with the registry, with the tenants, with the targets in a batch, with the backlog."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack

from contest import Contender, contest, measured
from figures import Row, Sizes
from processes import canned_endpoint, fast_worker
from stock import NAMES, Shape, stock_of

SECTION = "Growth of fast's CPU a message, canned endpoint"
FLAT = 1.25
"""Up to here a ratio is noise."""


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each dimension on its own, everything else the same."""
    registries = {
        f"{grants:,} grants": Shape(routes=grants // 20, commands=20_000 if grants > 10_000 else 2_000)
        for grants in sizes.growth
    }
    yield from compared(registries, sizes, judged=True)
    most = max(sizes.tenants)
    tenants = {
        f"{count:,} {'tenant' if count == 1 else 'tenants'}": Shape(
            sources=most, routes=10, tenants=count, commands=max(2_000, 2 * most)
        )
        for count in sizes.tenants
    }
    yield from compared(tenants, sizes, judged=True)
    queues = {
        f"{count} target {'queue' if count == 1 else 'queues'} in every ten": Shape(queues=count)
        for count in sizes.target_queues
    }
    yield from compared(queues, sizes, judged=False, note="a send to each: what SQS asks for")
    yield from backlog(sizes)


def compared(shapes: dict[str, Shape], sizes: Sizes, *, judged: bool, note: str = "") -> Iterator[Row]:
    """A worker for each shape, all taking turns."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for name, shape in shapes.items():
            endpoint = stack.enter_context(canned_endpoint(asyncio.run(stock_of(shape))))
            process = fast_worker(endpoint)
            stack.callback(process.stop)
            contenders[name] = Contender(process, endpoint, NAMES.fast)
        found = contest(contenders, rounds=sizes.growth_rounds, sizes=sizes)
        first = next(iter(shapes))
        for name, turn in found.items():
            ratio = turn.cpu / found[first].cpu
            megabytes = contenders[name].process.megabytes()
            judge = judged and name != first
            yield Row(
                section=SECTION,
                what=f"with {name}",
                value=round(turn.cpu, 1),
                unit="µs",
                beside="" if name == first else first,
                ratio=None if name == first else round(ratio, 2),
                target=f"flat (≤ {FLAT} ×)" if judge else "",
                met=ratio <= FLAT if judge else None,
                note=note or f"the process holds {megabytes:.0f} MB",
            )


def backlog(sizes: Sizes) -> Iterator[Row]:
    """A queue that never empties: the first seconds of it beside later ones, when a worker's own memory has filled."""
    windows = 4
    with canned_endpoint(asyncio.run(stock_of(Shape()))) as endpoint:
        process = fast_worker(endpoint)
        try:
            endpoint.await_poll(NAMES.fast)
            endpoint.ask("open", NAMES.fast)
            time.sleep(sizes.warm_seconds)
            turns = [measured(endpoint, process, 2 * sizes.window_seconds) for _ in range(windows)]
            behind = endpoint.ask("counts").deleted
        finally:
            process.stop()
    ratio = turns[-1].cpu / turns[0].cpu
    yield Row(section=SECTION, what="a backlog, its first messages", value=round(turns[0].cpu, 1), unit="µs")
    yield Row(
        section=SECTION,
        what=f"a backlog, after {behind:,} messages without a pause",
        value=round(turns[-1].cpu, 1),
        unit="µs",
        beside="its first",
        ratio=round(ratio, 2),
        target=f"flat (≤ {FLAT} ×)",
        met=ratio <= FLAT,
        note="a worker holds 160 messages, however many wait",
    )
