"""Planting a fault on purpose: one real function is replaced for as long as a run takes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault."""

    name: str
    fault: str
    promise: str
    seed: int
    place: Any
    attribute: str
    stand_in: Any

    def planted(self) -> AbstractContextManager[Any]:
        """The fault is there while this is entered."""
        return mock.patch.object(self.place, self.attribute, self.stand_in)


MUTANTS: dict[str, Mutant] = {}


def plant(
    fault: str, *, breaks: str, seed: int, place: Any, attribute: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(stand_in: Callable[..., Any]) -> Callable[..., Any]:
        name = stand_in.__name__.strip("_").replace("_", "-")
        MUTANTS[name] = Mutant(name, fault, breaks, seed, place, attribute, stand_in)
        return stand_in

    return register
