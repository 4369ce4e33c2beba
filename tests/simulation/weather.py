"""What goes wrong in a run and how often, drawn from the seed.

Not everything goes wrong in every run: faults that are rare together are common apart, and each draw leaves some out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which every call to one thing is refused."""

    what: str
    """`queues`, `tables`, or the name of a queue or table."""
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Weather:
    """The chance of each fault, for each call, until calm."""

    refused: float = 0.0
    """Throttled: not acted, and the caller is told."""
    lost: float = 0.0
    """The request never arrived: not acted, and the caller sees a timeout."""
    unanswered: float = 0.0
    """Acted, and the caller sees a timeout."""
    late: float = 0.0
    """The caller sees a timeout, and then it acts."""
    partial: float = 0.0
    """Some entries of a batch are acted on."""
    slow: float = 0.0
    """Seconds pass before, or after, it acts."""
    doubled: float = 0.0
    """A queue hands a message out again though somebody has it in hand."""
    shuffled: float = 0.0
    """A message is overtaken by later ones."""
    undeleted: float = 0.0
    """A message comes back once more though its delete was confirmed."""
    delayed: float = 0.0
    """The bus holds back a message put on it, or a copy of it, for up to seconds."""
    turned_away: float = 0.0
    """The bus does not take a message, and its producer puts it again."""
    unheard: float = 0.0
    """The bus takes a message and does not say so, and its producer puts it again."""
    behind: float = 0.0
    """Seconds that a stream's record takes at most to be seen."""
    repeated: float = 0.0
    """A read of a stream begins with records that were read before."""
    crash: float = 0.0
    """The worker dies with the call, before or after it acts."""
    latency: float = 0.0
    """Seconds a call takes at most when nothing is wrong with it."""
    outages: tuple[Outage, ...] = ()
    kills: tuple[float, ...] = ()
    """When some worker dies, whatever it is doing."""
    drains: tuple[float, ...] = ()
    """When some worker is told to stop."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the platform of a run is set up."""

    fleet: dict[str, int] = field(default_factory=dict[str, int])
    """How many workers each service has."""
    skew: float = 0.0
    """How far a worker's clock is off at most, either way."""
    visibility_seconds: int = 5
    refresh_seconds: float = 1.0
    max_receive_count: int = 60
    delivery_attempts: int = 6
    replay_window_seconds: float = 60.0
    claim_seconds: float = 6.0
    dedupe_seconds: float = 300.0
    lease_seconds: float = 5.0
    drain_seconds: float = 6.0
    ttls: dict[str, tuple[float, float]] = field(
        default_factory=lambda: {
            "critical": (1.0, 2.0),
            "moderate": (2.0, 4.0),
            "low": (4.0, 8.0),
            "keys": (3.0, 6.0),
            "routing": (6.0, 12.0),
        }
    )
    """For each cache the ages at which it turns stale and expires; shorter than in life, as the runs are."""
    global_ban_after: int = 3
    global_ban_within_seconds: float = 600.0
    global_ban_seconds: float = 600.0
    page_items: int | None = None
    """How many changes of the registry a query brings at most."""
    swept: bool = True
    """Whether there is a sweeper. Without one, the ways of telemetry are spared what only a sweeper makes good."""
    busy_seconds: float = 12.0
    """How long things are put, changed and broken."""
    weather: Weather = field(default_factory=Weather)

    def expires(self, cache: str) -> float:
        """The age beyond which nothing may be relied on."""
        return self.ttls[cache][1]


def draw_settings(rng: Random) -> Settings:
    """The platform and the weather of one run."""
    busy = rng.uniform(5.0, 14.0)
    return Settings(
        fleet={
            "shield": rng.choice((1, 1, 2)),
            "fast": rng.choice((1, 2, 2)),
            "slow": rng.choice((1, 1, 2)),
            "outbox": rng.choice((1, 1, 2)),
        },
        skew=rng.choice((0.0, 0.0, 0.05, 0.25)),
        visibility_seconds=rng.choice((3, 5, 8)),
        refresh_seconds=rng.choice((0.7, 1.0, 1.5)),
        claim_seconds=rng.choice((4.0, 6.0, 10.0)),
        lease_seconds=rng.choice((2.0, 5.0)),
        drain_seconds=rng.choice((3.0, 6.0)),
        global_ban_after=rng.choice((2, 3)),
        global_ban_within_seconds=rng.choice((5.0, 600.0)),
        global_ban_seconds=rng.choice((4.0, 600.0)),
        delivery_attempts=rng.choice((2, 6)),
        page_items=rng.choice((None, 2)),
        swept=rng.random() < 0.75,
        busy_seconds=busy,
        weather=_draw_weather(rng, busy),
    )


def _draw_weather(rng: Random, busy: float) -> Weather:
    def sometimes(most: float) -> float:
        return rng.uniform(0.0, most) if rng.random() < 0.5 else 0.0

    outages = [
        Outage(
            rng.choice(("tables", "queues", "fast", "slow", "target", "outbox", "changelog")),
            at,
            at + rng.uniform(0.5, 6),
        )
        for at in (rng.uniform(0, busy) for _ in range(rng.choice((0, 0, 0, 1, 2))))
    ]
    return Weather(
        refused=sometimes(0.10),
        lost=sometimes(0.05),
        unanswered=sometimes(0.10),
        late=sometimes(0.06),
        partial=sometimes(0.30),
        slow=sometimes(0.05),
        doubled=sometimes(0.15),
        shuffled=sometimes(0.50),
        undeleted=sometimes(0.10),
        delayed=sometimes(0.40),
        turned_away=sometimes(0.20),
        unheard=sometimes(0.10),
        behind=rng.choice((0.0, 0.0, 1.0, 4.0)),
        repeated=sometimes(0.20),
        crash=sometimes(0.012),
        latency=rng.choice((0.0, 0.005, 0.05)),
        outages=tuple(outages),
        kills=tuple(rng.uniform(0, busy) for _ in range(rng.choice((0, 0, 1, 2)))),
        drains=tuple(rng.uniform(0, busy) for _ in range(rng.choice((0, 0, 1, 2)))),
    )
