"""Warm dispatch: the real fast worker beside bare forwarders, on a canned endpoint; and how long a message takes at half load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from contest import Contender, Turn, contest
from figures import Row, Sizes, spread
from processes import Canned, canned_endpoint, fast_worker, forwarder
from stock import NAMES, Shape, stock_of

SECTION = "Warm dispatch, messages a second of a core, canned endpoint"
LATENCY = "Latency of one hop, open loop, canned endpoint"
FAST, LEAN, RECORDING, BOTO = "fast", "lean", "recording", "aiobotocore"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Throughput and CPU of each, then the latency of fast's hop at half of its throughput."""
    with canned_endpoint(asyncio.run(stock_of(Shape()))) as endpoint:
        contenders = {
            FAST: Contender(fast_worker(endpoint), endpoint, NAMES.fast),
            LEAN: Contender(forwarder("lean", endpoint, "bare-lean"), endpoint, "bare-lean"),
            RECORDING: Contender(
                forwarder("recording", endpoint, "bare-recording"), endpoint, "bare-recording"
            ),
            BOTO: Contender(forwarder("aiobotocore", endpoint, "bare-boto"), endpoint, "bare-boto"),
        }
        try:
            found = contest(contenders, rounds=sizes.dispatch_rounds, sizes=sizes)
            yield from throughput(found)
            yield from hop(
                endpoint, NAMES.fast, found[FAST].rate / 2, sizes, "fast, at half of its throughput"
            )
            yield from hop(
                endpoint, "bare-lean", found[FAST].rate / 2, sizes, "bare forwarder, lean client, same rate"
            )
        finally:
            for contender in contenders.values():
                contender.process.stop()


def throughput(found: dict[str, Turn]) -> Iterator[Row]:
    """Messages a second of a core's time, and CPU a message, with the two ratios that are promised.

    A core's time rather than the wall clock's: nobody else on the machine can spend it.
    """
    fast, lean, recording, boto = found[FAST], found[LEAN], found[RECORDING], found[BOTO]

    def row(
        what: str, turn: Turn, *, beside: str = "", ratio: float | None = None, least: float | None = None
    ) -> Row:
        note = f"{turn.rate:,.0f} msg/s on {turn.busy:.0%} of a core; {turn.calls:.1f} calls for ten"
        return Row(
            section=SECTION,
            what=what,
            value=round(1e6 / turn.cpu),
            unit="msg/s",
            beside=beside,
            ratio=None if ratio is None else round(ratio, 2),
            target="" if least is None else f"≥ {least:g} ×",
            met=None if least is None or ratio is None else ratio >= least,
            note=note,
        )

    yield row("bare forwarder, aiobotocore", boto)
    yield row("bare forwarder, lean client", lean, beside="aiobotocore's", ratio=boto.cpu / lean.cpu)
    yield row(
        "the same, which records each in an outbox too",
        recording,
        beside="the lean forwarder's",
        ratio=lean.cpu / recording.cpu,
    )
    yield row("fast, governed", fast, beside="the recording forwarder's", ratio=recording.cpu / fast.cpu)
    yield row("fast, governed", fast, beside="the lean forwarder's", ratio=lean.cpu / fast.cpu, least=0.8)
    yield row("fast, governed", fast, beside="aiobotocore's", ratio=boto.cpu / fast.cpu, least=8)
    for what, turn in (
        ("bare forwarder, aiobotocore: CPU a message", boto),
        ("bare forwarder, lean client: CPU a message", lean),
        ("the same, which records each in an outbox too: CPU a message", recording),
        ("fast, governed: CPU a message", fast),
    ):
        ratio = round(turn.cpu / lean.cpu, 2)
        beside = "" if turn is lean else "the lean forwarder's"
        yield Row(
            section=SECTION,
            what=what,
            value=round(turn.cpu, 1),
            unit="µs",
            beside=beside,
            ratio=ratio if beside else None,
            note="of its own process",
        )
    ceiling = 1e6 / lean.endpoint_cpu
    yield Row(
        section=SECTION,
        what="the endpoint's own ceiling",
        value=round(ceiling),
        unit="msg/s",
        beside="the lean forwarder's",
        ratio=round(ceiling * lean.cpu / 1e6, 2),
        note=f"so the endpoint is not what is measured; it used {lean.endpoint_busy:.0%} of a core at most",
    )


def hop(endpoint: Canned, queue: str, rate: float, sizes: Sizes, what: str) -> Iterator[Row]:
    """From the moment a message was due in the queue until it is in its target's, however far behind the worker is."""
    count = max(20, int(rate * sizes.schedule_seconds))
    endpoint.await_poll(queue)
    endpoint.ask("schedule", queue, round(rate, 3), count)
    deadline = time.monotonic() + 4 * sizes.schedule_seconds + 10
    latencies: list[float] = []
    while len(latencies) < count and time.monotonic() < deadline:
        time.sleep(0.1)
        latencies = endpoint.ask("latencies", answer=list[float])
    if len(latencies) < count:
        raise SystemExit(f"{what}: only {len(latencies)} of {count} messages arrived")
    for name, milliseconds in spread(latencies).items():
        judged = name == "p99" and queue == NAMES.fast
        yield Row(
            section=LATENCY,
            what=f"{what}: {name}",
            value=round(milliseconds, 2),
            unit="ms",
            target="< 100 ms" if judged else "",
            met=milliseconds < 100 if judged else None,
            note=f"{rate:.0f} msg/s, {count} messages" if name == "mean" else "",
        )
