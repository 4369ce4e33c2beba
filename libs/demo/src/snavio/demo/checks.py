"""What the demonstration claims, each with the figure expected and the figure seen."""

from __future__ import annotations

from typing import Any, cast

import msgspec


class Check(msgspec.Struct, frozen=True):
    """One claim."""

    claim: str
    expected: str
    seen: str
    holds: bool


class Checks:
    """The claims made so far."""

    def __init__(self) -> None:
        self.made: list[Check] = []

    def equal(self, claim: str, expected: object, seen: object) -> None:
        """Claim that two figures are the same."""
        self.made.append(Check(claim, _shown(expected), _shown(seen), expected == seen))

    def true(self, claim: str, *, expected: str, seen: str, holds: bool) -> None:
        """Claim something whose figures need words."""
        self.made.append(Check(claim, expected, seen, holds))

    @property
    def hold(self) -> bool:
        """Whether every claim does."""
        return bool(self.made) and all(check.holds for check in self.made)


def _shown(figure: object) -> str:
    if isinstance(figure, (list, set)):
        return ", ".join(sorted(str(one) for one in cast("list[object] | set[object]", figure)))
    return str(figure)


def percentile(values: list[float], part: float) -> float:
    """The value below which this part of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


def counted(events: list[dict[str, Any]], kind: str, **fields: Any) -> int:
    """How many events are of a kind and have these fields."""
    return sum(
        1
        for event in events
        if event["event"] == kind and all(event.get(name) == value for name, value in fields.items())
    )
