"""What tenants and operators do in a run, drawn from the seed: who sends what and when, and what is changed meanwhile."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.domain.models import (
    BanMode,
    DedupeMode,
    DispatchMode,
    FairnessPolicy,
    RateLimit,
    Sensitivity,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from simulation.weather import Settings

SOURCES = ("acme/billing", "acme/web", "globex/app", "initech/cron")
TARGETS = {"bot": "acme", "mail": "globex", "ledger": "initech"}
COMMANDS = ("notify", "update")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LARGE = 1500
"""Characters that make a payload too large for a queue of 4 KiB and what goes beside it."""


@dataclass(slots=True)
class Step:
    """Something done at a moment of the run: a call of `Actors` by name."""

    at: float
    action: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """A whole run's doings: what stands before the first worker starts, and what happens then."""

    routes: list[dict[str, Any]]
    grants: list[dict[str, Any]]
    steps: list[Step]


def draw_plan(rng: Random, settings: Settings) -> Plan:
    """What happens in one run."""
    pairs = [(target, command) for target in TARGETS for command in COMMANDS]
    pairs = rng.sample(pairs, rng.randint(2, 4))
    routes = [_draw_route(rng, *pair, settings) for pair in pairs]
    grants = [
        {"source": source, "target": target, "command": command, **_own_profile(rng)}
        for source in SOURCES
        for target, command in pairs
        if rng.random() < 0.8
    ]
    draw = _Draw(rng, settings, pairs, grants)
    draw.commands()
    draw.changes()
    return Plan(routes, grants, sorted(draw.steps, key=lambda step: step.at))


def _own_profile(rng: Random) -> dict[str, Any]:
    return {"sensitivity": rng.choice(list(Sensitivity))} if rng.random() < 0.3 else {}


def _draw_route(rng: Random, target: str, command: str, settings: Settings) -> dict[str, Any]:
    route: dict[str, Any] = {"target": target, "command": command, "tenant": TARGETS[target]}
    route["sensitivity"] = rng.choice(list(Sensitivity))
    kind = rng.choice(
        ("plain", "plain", "strict", "strict", "limited", "limited", "shadow", "schema", "small", "gone")
    )
    if kind == "strict":
        route["dedupe_mode"] = DedupeMode.STRICT
    if kind in {"limited", "shadow"} or (kind == "strict" and rng.random() < 0.3):
        route["rate_limit"] = draw_limit(rng, settings, shadow=kind == "shadow")
    if kind == "schema":
        route["schema"] = SCHEMA
    if kind == "small":
        route["max_message_bytes"] = 4096 + LARGE // 2
    if kind == "gone":
        route["gone"] = True
    route["fairness"] = FairnessPolicy(
        min_dispatches=6, window_seconds=4.0, ban_seconds=3.0, min_competitors=2
    )
    return route


def draw_limit(rng: Random, settings: Settings, *, shadow: bool = False) -> RateLimit:
    """A limit whose burst leaves room for the clocks' skew, as the contract asks."""
    limit, interval = rng.choice(((2, 1), (5, 1), (1, 2), (10, 1)))
    burst = rng.choice((1, 2, limit, 2 * limit))
    return RateLimit(limit, interval, max(_least_burst(settings, limit, interval), burst), shadow=shadow)


def _least_burst(settings: Settings, limit: int, interval: int) -> int:
    return 1 + int(2 * settings.skew * limit / interval + 0.999)


class _Draw:
    """Fills the list of steps."""

    def __init__(
        self, rng: Random, settings: Settings, pairs: list[tuple[str, str]], grants: list[dict[str, Any]]
    ) -> None:
        self.rng = rng
        self.busy = settings.busy_seconds
        self.settings = settings
        self.pairs = pairs
        self.grants = grants
        self.steps: list[Step] = []

    def commands(self) -> None:
        """Single commands, bursts, and everything that should never arrive."""
        rng = self.rng
        for _ in range(rng.randint(6, 18)):
            self._command(rng.uniform(0.1, self.busy))
        for _ in range(rng.choice((0, 1, 1, 2))):
            self._burst()
        if rng.random() < 0.35:
            self._crowd_out()

    def changes(self) -> None:
        """What operators change meanwhile."""
        rng = self.rng
        kinds: list[Callable[[float], None]] = [
            self._revoke,
            self._revoke,
            self._grant,
            self._route,
            self._key,
            self._ban,
            self._mode,
            self._quota,
        ]
        for _ in range(rng.randint(0, 7)):
            rng.choice(kinds)(rng.uniform(0.1, self.busy))

    def _command(self, at: float) -> None:
        rng = self.rng
        known = rng.random() < 0.9 and self.grants
        grant = rng.choice(self.grants) if known else None
        source = grant["source"] if grant else rng.choice(SOURCES)
        target, command = (grant["target"], grant["command"]) if grant else rng.choice(self.pairs)
        kind = rng.choices(
            (
                "valid",
                "twice",
                "forged",
                "altered",
                "old",
                "future",
                "malformed",
                "broken",
                "replay",
                "false-replay",
                "stranger",
                "nowhere",
            ),
            (60, 10, 4, 3, 3, 1, 2, 3, 3, 1, 2, 2),
        )[0]
        self._put(at, kind, source, target, command)
        if kind == "twice":
            again = at + rng.choice((0.0, 0.01, 0.5, 2.0, 6.0))
            self._again(min(again, self.busy))

    def _burst(self) -> None:
        """Many commands for one target at once, mostly from one source; and perhaps the same again, and again."""
        rng = self.rng
        at = rng.uniform(0.1, self.busy)
        source, (target, command) = rng.choice(SOURCES), rng.choice(self.pairs)
        others = [one for one in SOURCES if one != source]
        spread, mixed = rng.choice((0.0, 0.5, 2.0)), rng.choice((0.0, 0.15, 0.35))
        starts = [at]
        while rng.random() < 0.5:
            starts.append(starts[-1] + rng.uniform(1.5, 5))
        for start in [one for one in starts if one <= self.busy]:
            for _ in range(rng.randint(5, 16)):
                sender = rng.choice(others) if rng.random() < mixed else source
                self._put(start + rng.uniform(0, spread), "valid", sender, target, command)

    def _crowd_out(self) -> None:
        """One source takes most of what others want as well, and goes on once it is off the warm path for it."""
        rng = self.rng
        granted: dict[tuple[str, str], list[str]] = {}
        for grant in self.grants:
            granted.setdefault((grant["target"], grant["command"]), []).append(grant["source"])
        contended = [pair for pair, sources in granted.items() if len(sources) > 1]
        if not contended:
            return
        pair = rng.choice(contended)
        source, *others = rng.sample(granted[pair], len(granted[pair]))
        start, spread = rng.uniform(0.1, max(0.2, self.busy - 4.0)), rng.uniform(0.2, 1.5)
        for other in others[:2]:
            self._put(start, "valid", other, *pair)
        for _ in range(rng.randint(12, 20)):
            self._put(start + rng.uniform(0.1, spread), "valid", source, *pair)
        if rng.random() < 0.5:
            # Then its target has a limit as well, and whoever goes on so is refused for it.
            self._reroute(start + spread, *pair, "limit")
        for again in (start + spread + rng.uniform(0.0, 1.0), start + spread + rng.uniform(1.0, 4.0)):
            for _ in range(rng.randint(0, 12)):
                self._put(again + rng.uniform(0.0, 0.2), "valid", source, *pair)

    def _put(self, at: float, kind: str, source: str, target: str, command: str) -> None:
        rng = self.rng
        payload: Any = {"n": rng.randint(0, 9)} if rng.random() < 0.85 else {"m": "x"}
        if rng.random() < 0.05:
            payload = {"n": 1, "text": "x" * LARGE}
        identity = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self.steps.append(
            Step(
                at,
                "put",
                {
                    "kind": kind,
                    "source": source,
                    "target": target,
                    "command": command,
                    "id": identity,
                    "payload": payload,
                    "roll": rng.random(),
                    "legacy": rng.random() < 0.2,
                },
            )
        )

    def _again(self, at: float) -> None:
        self.steps.append(Step(at, "again", {"first": self.steps[-1].arguments["id"]}))

    def _revoke(self, at: float) -> None:
        if self.grants:
            grant = self.rng.choice(self.grants)
            named = {name: grant[name] for name in ("source", "target", "command")}
            self.steps.append(Step(at, "revoke", named))
            # While it is revoked it is tried, or there would be nothing to see.
            for _ in range(self.rng.randint(1, 4)):
                self._put(min(self.busy, at + self.rng.uniform(0, 6)), "valid", *named.values())
            if self.rng.random() < 0.4:
                back = min(self.busy, at + self.rng.uniform(0.1, 5))
                self.steps.append(Step(back, "grant", named))

    def _grant(self, at: float) -> None:
        target, command = self.rng.choice(self.pairs)
        source = self.rng.choice(SOURCES)
        self.steps.append(Step(at, "grant", {"source": source, "target": target, "command": command}))

    def _route(self, at: float) -> None:
        target, command = self.rng.choice(self.pairs)
        how = self.rng.choice(("remove", "move", "limit", "profile", "schema"))
        self._reroute(at, target, command, how)
        if how == "remove" and self.rng.random() < 0.7:
            back = min(self.busy, at + self.rng.uniform(0.1, 6))
            self.steps.append(Step(back, "restore", {"target": target, "command": command}))

    def _reroute(self, at: float, target: str, command: str, how: str) -> None:
        arguments: dict[str, Any] = {"target": target, "command": command, "how": how}
        arguments["limit"] = draw_limit(self.rng, self.settings)
        arguments["sensitivity"] = self.rng.choice(list(Sensitivity))
        self.steps.append(Step(at, "reroute", arguments))

    def _key(self, at: float) -> None:
        how = self.rng.choice(("rotate", "rotate", "end", "delete"))
        source = self.rng.choice(SOURCES)
        self.steps.append(
            Step(at, "key", {"source": source, "how": how, "grace": self.rng.uniform(0.0, 8.0)})
        )
        for _ in range(self.rng.randint(1, 3)):
            target, command = self.rng.choice(self.pairs)
            self._put(min(self.busy, at + self.rng.uniform(0, 8)), "valid", source, target, command)
            self.steps[-1].arguments["legacy"] = True

    def _ban(self, at: float) -> None:
        mode = self.rng.choice(list(BanMode))
        everywhere = mode is BanMode.OUTRIGHT or self.rng.random() < 0.3
        target, command = (None, None) if everywhere else self.rng.choice(self.pairs)
        source = self.rng.choice(SOURCES)
        seconds = self.rng.choice((None, self.rng.uniform(0.5, 6)))
        self.steps.append(
            Step(
                at,
                "ban",
                {"source": source, "mode": mode, "target": target, "command": command, "seconds": seconds},
            )
        )
        for _ in range(self.rng.randint(1, 3)):
            self._put(
                min(self.busy, at + self.rng.uniform(0, 8)), "valid", source, *(self.rng.choice(self.pairs))
            )
        if self.rng.random() < 0.4:
            lift = {"source": source, "target": target, "command": command}
            self.steps.append(Step(min(self.busy, at + self.rng.uniform(0.5, 5)), "lift", lift))

    def _mode(self, at: float) -> None:
        self.steps.append(Step(at, "mode", {"mode": DispatchMode.COLD_ONLY}))
        if self.rng.random() < 0.7:
            back = min(self.busy, at + self.rng.uniform(0.5, 6))
            self.steps.append(Step(back, "mode", {"mode": DispatchMode.ADAPTIVE}))

    def _quota(self, at: float) -> None:
        """A quota is looked at only for a source that is off the warm path: it is banned from it, and sends."""
        rng = self.rng
        if not self.grants:
            return
        grant = rng.choice(self.grants)
        named = {name: grant[name] for name in ("source", "target", "command")}
        limit, interval = rng.choice(((1, 1), (1, 2), (2, 1)))
        burst = max(_least_burst(self.settings, limit, interval), rng.choice((1, 2)))
        self.steps.append(Step(at, "quota", {**named, "limit": RateLimit(limit, interval, burst)}))
        seconds = rng.uniform(4.0, 10.0)
        self.steps.append(Step(at, "ban", {**named, "mode": BanMode.WARM, "seconds": seconds}))
        start = at + rng.uniform(0.0, 3.0)
        for _ in range(rng.randint(4, 10)):
            self._put(min(self.busy, start + rng.uniform(0.0, 4.0)), "valid", *named.values())


def encode(event: dict[str, Any]) -> str:
    """A bus event as the ingress queue receives it."""
    return msgspec.json.encode(event).decode()
