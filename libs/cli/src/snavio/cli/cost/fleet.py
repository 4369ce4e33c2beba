"""The workers a load needs, and how well their batches are filled at it."""

from __future__ import annotations

from math import ceil

import msgspec

from snavio.cli.cost.calls import LEFT_TO_SLOW, Fills, events_of
from snavio.cli.cost.workload import MAX_BATCH, Path, Workload

CPU_SECONDS = {"shield": 100e-6, "fast": 120e-6, "slow": 400e-6, "outbox": 300e-6}
"""Of a vCPU, for a command or, in outbox, an event: an allowance, some times what `make bench` measures of decisions and
client calls, since a vCPU is half a core and a loop has more to do. A bill hardly depends on it."""
SERVICES = (*CPU_SECONDS, "monitor", "gateway")
BUSY = 0.5
"""The part of its time a worker is let work, the rest being room for bursts."""
FEWEST = 2
"""Workers of each service, so that one may die."""
LEAST_VCPU, MOST_VCPU = 0.25, 1.0
"""Of one worker: the smallest there is on Fargate, and what one event loop can use."""
GB_A_VCPU = 2.0
POLLS = 4
LINGER_SECONDS = 1.0
"""How long outbox lets an event wait for others of its tenant."""
LEASE_SECONDS = 2.0
"""How much demand one lease covers."""


class Crew(msgspec.Struct, frozen=True):
    """The workers of one service."""

    workers: int
    vcpu: float
    """Of all of them."""


class Fleet(msgspec.Struct, frozen=True):
    """All workers at a load, and the batches they see."""

    crews: dict[str, Crew]
    fills: Fills
    per_second: dict[str, float]
    """Messages each queue's workers see; for outbox, events."""

    @property
    def vcpu(self) -> float:
        """Of all workers."""
        return sum(crew.vcpu for crew in self.crews.values())


def fleet_for(load: Workload) -> Fleet:
    """What has to run for a load."""
    invalid = load.share(Path.INVALID)
    events = sum(load.mix.get(path, 0.0) * events_of(path) for path in Path) if load.telemetry else 0.0
    per_second = {
        "shield": load.rate,
        "fast": load.rate * (1.0 - invalid),
        "slow": load.rate * load.share(*LEFT_TO_SLOW),
        "outbox": load.rate * events,
    }
    crews = {
        service: _crew(per_second.get(service, 0.0) * CPU_SECONDS.get(service, 0.0)) for service in SERVICES
    }
    fills = {
        service: load.fill(per_second[service], crews[service].workers * POLLS)
        for service in ("shield", "fast", "slow")
    }
    # A limited route is taken to be as busy as any other.
    demand = per_second["fast"] / (load.targets * crews["fast"].workers)
    return Fleet(
        crews,
        Fills(
            **fills,
            publish=min(MAX_BATCH, max(1.0, per_second["outbox"] / load.tenants * LINGER_SECONDS)),
            lease=max(1.0, demand * LEASE_SECONDS),
        ),
        per_second,
    )


def _crew(busy_vcpu: float) -> Crew:
    needed = busy_vcpu / BUSY
    workers = max(FEWEST, ceil(needed / MOST_VCPU))
    # Fargate sells quarters.
    each = max(LEAST_VCPU, ceil(needed / workers / LEAST_VCPU) * LEAST_VCPU)
    return Crew(workers, workers * each)
