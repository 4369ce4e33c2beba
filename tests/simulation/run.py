"""One seed from its drawing to its verdict."""

from __future__ import annotations

import hashlib
import signal
import traceback
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from simulation.mutants import MUTANTS
from simulation.promises import Violation, check
from simulation.world import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAIL = 40
MOST_SECONDS = 60.0
"""How long a run may take by the clock on the wall: some hundred times what it needs."""
SIMULATOR_FAILED = "the simulator itself works"
"""What is broken when a run or a checker raises: no promise of the platform's."""


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
    happened: list[tuple[Any, ...]] = []
    try:
        with _in_time():
            with MUTANTS[mutant].planted() if mutant else nullcontext():
                history = simulate(seed, happened)
            violations = check(history)
    except _TooLong as failure:
        return _failed(seed, failure, happened, whole=whole)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # noqa: BLE001 - nothing a run raises may hide its seed
        return _failed(seed, failure, happened, whole=whole)
    # Writing it out takes longer than its digest.
    trace = traced(happened) if whole or violations else []
    return Verdict(
        seed,
        violations,
        _digest(happened),
        len(history.sent),
        len(history.deliveries),
        len(history.crashed),
        trace if whole else trace[-_TAIL:],
    )


class _TooLong(KeyboardInterrupt):
    """A run took too long. As whoever presses Ctrl-C, it is heard by nothing within the run."""


@contextmanager
def _in_time() -> Iterator[None]:
    """End what never gives way to the loop, on which no time passes."""

    def ring(_number: int, _frame: Any) -> None:
        raise _TooLong(f"it took more than {MOST_SECONDS:g} s")

    handler, timer = signal.signal(signal.SIGALRM, ring), signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def _failed(seed: int, failure: BaseException, happened: list[tuple[Any, ...]], *, whole: bool) -> Verdict:
    trace = traced(happened)
    raised = "".join(traceback.format_exception(failure)).splitlines()
    why = f"a run or a checker raised {type(failure).__name__}: {failure}"
    return Verdict(
        seed,
        [Violation(SIMULATOR_FAILED, why)],
        _digest(happened),
        trace=[*(trace if whole else trace[-_TAIL:]), *raised],
    )


def _digest(happened: list[tuple[Any, ...]]) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(happened)).hexdigest()


def traced(happened: list[tuple[Any, ...]]) -> list[str]:
    """Everything that happened, a line each."""
    return [f"{at:10.4f}  {who:<10} {what:<22} {' '.join(rest)}" for at, who, what, *rest in happened]


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
