"""The slowest of many: routing on a registry of a million grants, and the check of a payload against its schema."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import msgspec
from decisions import Local
from figures import Row, Sizes, spread
from samples import NAME, NOW, PAYLOAD
from stock import Shape, registry_of

from snavio.domain.models import DispatchMode
from snavio.domain.warm import Deliver, decide_warm
from snavio.registry.schemas import compile_schema
from snavio.wire.canonical import canonical
from snavio.wire.commands import Admitted

SECTION = "Tails, one call at a time, in process"
SCHEMA = {
    "type": "object",
    "required": ["user", "text"],
    "properties": {
        "user": {"type": "integer", "minimum": 1},
        "text": {"type": "string", "maxLength": 2000},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}, "uniqueItems": True},
        "n": {"type": "number"},
    },
    "additionalProperties": False,
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Both, by the clock on the wall: a pause of the collector or of the machine counts too."""
    shape = Shape(routes=sizes.routes, sources=sizes.grants // sizes.routes)
    registry, local, chance = registry_of(shape), Local(), random.Random(7)
    registry.as_of = NOW
    payload = msgspec.Raw(canonical(PAYLOAD))

    def route() -> object:
        source = shape.source(chance.randrange(shape.sources))
        target = f"target-{chance.randrange(shape.routes)}"
        command = Admitted(source, "id", "then", target, NAME, NOW, payload)
        decision = decide_warm(command, "m", registry, local, DispatchMode.ADAPTIVE, NOW)
        if not isinstance(decision, Deliver):
            raise SystemExit(f"fast did not route: {decision}")
        return decision

    check = compile_schema(SCHEMA)

    def validate() -> object:
        fault = check(payload)
        if fault is not None:
            raise SystemExit(f"the schema refused its payload: {fault}")
        return fault

    yield from _rows(f"routing among {shape.grants:,} grants", route, 5, sizes)
    yield from _rows("the check of a payload against its schema", validate, 10, sizes)


def _rows(what: str, work: Callable[[], object], most_ms: float, sizes: Sizes) -> Iterator[Row]:
    work()
    taken: list[float] = []
    for _ in range(sizes.calls * sizes.rounds):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    found = spread(taken)
    for name in ("p50", "p99"):
        judged = name == "p99"
        yield Row(
            section=SECTION,
            what=f"{what}: {name}",
            value=round(found[name], 4),
            unit="ms",
            target=f"< {most_ms:g} ms" if judged else "",
            met=found[name] < most_ms if judged else None,
            note=f"the slowest of {len(taken):,}: {max(taken) * 1000:.2f} ms" if judged else "",
        )
