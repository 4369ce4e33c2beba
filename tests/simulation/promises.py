"""The promises a run is checked for, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulation import (
    checkers,
    fairness_checkers,
    limit_checkers,
    losing_checkers,
    refusal_checkers,
    telling_checkers,
)

if TYPE_CHECKING:
    from simulation.checkers import Checker
    from simulation.history import History


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise broken."""

    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


PROMISES: dict[str, Checker] = {
    "nothing is lost": losing_checkers.nothing_lost,
    "nothing is buried alive": losing_checkers.nothing_buried_alive,
    "only what is allowed is delivered": checkers.only_what_is_allowed,
    "the fast path can be shut": checkers.the_fast_path_is_shut,
    "memory is bounded": checkers.memory_is_bounded,
    "strict ones once": checkers.strict_ones_once,
    "marks are just": checkers.marks_are_just,
    "limits hold": limit_checkers.limits_hold,
    "quotas hold": limit_checkers.quotas_hold,
    "outcomes are told": telling_checkers.outcomes_are_told,
    "what is told arrives": telling_checkers.what_is_told_arrives,
    "one event id, one story": telling_checkers.one_id_one_story,
    "a step is told once": telling_checkers.a_step_is_told_once,
    "refusals are just": refusal_checkers.refusals_are_just,
    "slips are told": telling_checkers.slips_are_told,
    "bans are just": fairness_checkers.bans_are_just,
    "workers stand": telling_checkers.workers_stand,
}


def check(history: History) -> list[Violation]:
    """Every promise the run broke."""
    return [Violation(promise, what) for promise, checker in PROMISES.items() for what in checker(history)]
