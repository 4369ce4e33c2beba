"""Decision trees found by running the decisions.

A decision is run with stand-ins that answer questions from a script and note what was asked. It is run again for every
other answer to every question it came to ask, until no answer is left untried. What comes out is the decision as the code
makes it: its conditions, in their order, and every outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec


class Leaf(msgspec.Struct, frozen=True):
    """Where a decision ends: an outcome, or where it goes on."""

    text: str
    kind: str = "go"
    """`go`, `stop`, `again`, `slow` or `next`: how it is drawn."""


class Question(msgspec.Struct, frozen=True):
    """A condition, with what follows from each answer."""

    text: str
    branches: tuple[tuple[str, Tree], ...]


Tree: TypeAlias = Leaf | Question


class Oracle:
    """Answers each question once, by the script while it lasts and with the first answer after that."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = script
        self._known: dict[str, Any] = {}
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def ask(self, question: str, answers: Mapping[str, Any]) -> Any:
        """The value that stands for the answer. The same question gets the same answer again."""
        if question not in self._known:
            place = len(self.asked)
            chosen = self._script[place] if place < len(self._script) else 0
            self.asked.append((question, tuple(answers)))
            self._known[question] = tuple(answers.values())[chosen]
        return self._known[question]


def explore(decide: Callable[[Oracle], Leaf]) -> Tree:
    """The whole tree of a decision; what makes no difference is left out of it."""
    return _grow(decide, ())


def _grow(decide: Callable[[Oracle], Leaf], script: tuple[int, ...]) -> Tree:
    oracle = Oracle(script)
    leaf = decide(oracle)
    if len(oracle.asked) == len(script):
        return leaf
    question, answers = oracle.asked[len(script)]
    return joined(question, [(answer, _grow(decide, (*script, at))) for at, answer in enumerate(answers)])


def joined(question: str, branches: list[tuple[str, Tree]]) -> Tree:
    """A question, with answers that lead to the same told together; none where every answer does."""
    together: dict[Tree, list[str]] = {}
    for answer, tree in branches:
        together.setdefault(tree, []).append(answer)
    if len(together) == 1:
        return branches[0][1]
    return Question(question, tuple((" or ".join(answers), tree) for tree, answers in together.items()))


def continued(tree: Tree, leaf: Leaf, below: Tree) -> Tree:
    """A tree with another in the place of one of its leaves."""
    if isinstance(tree, Leaf):
        return below if tree == leaf else tree
    return Question(
        tree.text, tuple((answer, continued(branch, leaf, below)) for answer, branch in tree.branches)
    )


class Unsure:
    """A truth, or a number, asked for when it is looked at."""

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask

    def __bool__(self) -> bool:
        """As a truth."""
        return self._ask()

    def __ge__(self, other: object) -> bool:
        """As a number of tries: whether there are enough."""
        return self._ask()

    def __sub__(self, other: object) -> int:
        """As a number of tries: any will do."""
        return 1

    def __rsub__(self, now: float) -> float:
        """As a moment: how long ago it was, a long time or none."""
        return float("inf") if self._ask() else 0.0
