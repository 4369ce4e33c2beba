"""One seed from its drawing to its verdict."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulation.mutants import MUTANTS
from simulation.promises import check
from simulation.world import simulate

if TYPE_CHECKING:
    from simulation.history import History
    from simulation.promises import Violation

_TAIL = 40


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one seed."""

    seed: int
    violations: list[Violation]
    digest: str
    """Of everything that happened, in order: the same seed has the same."""
    commands: int = 0
    deliveries: int = 0
    crashes: int = 0
    trace: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        """The promises broken, each once."""
        return list(dict.fromkeys(one.promise for one in self.violations))


def judge(seed: int, *, mutant: str | None = None, whole: bool = False) -> Verdict:
    """Simulate one seed and check it; the trace is kept where it is asked for whole, its end where a promise is broken."""
    with MUTANTS[mutant].planted() if mutant else nullcontext():
        history = simulate(seed)
    violations = check(history)
    trace = traced(history)
    return Verdict(
        seed,
        violations,
        hashlib.sha256("\n".join(trace).encode()).hexdigest(),
        len(history.sent),
        len(history.deliveries),
        len(history.crashed),
        trace if whole else trace[-_TAIL:] if violations else [],
    )


def traced(history: History) -> list[str]:
    """Everything that happened, a line each."""
    return [f"{at:10.4f}  {who:<10} {what:<22} {' '.join(rest)}" for at, who, what, *rest in history.trace]


def told(verdict: Verdict, mutant: str | None = None) -> str:
    """A failure as a person wants to read it."""
    planted = f" MUTANT={mutant}" if mutant else ""
    lines = [f"seed {verdict.seed} breaks {len(verdict.broken)} promise(s)", ""]
    lines += [f"  {violation}" for violation in verdict.violations[:20]]
    lines += ["", f"the last of {verdict.commands} commands and {verdict.crashes} crashes:", ""]
    lines += [f"  {line}" for line in verdict.trace]
    lines += [
        "",
        f"replay exactly:  make simulate SEED={verdict.seed}{planted}",
        "everything it did:  … TRACE=1",
    ]
    return "\n".join(lines)
