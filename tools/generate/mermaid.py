"""Trees as Mermaid flowcharts."""

from __future__ import annotations

from collections import deque

from exploring import Leaf, Question, Tree

_STYLES = [
    "classDef go fill:#d9f2df,stroke:#2e7d4f,color:#123",
    "classDef stop fill:#fbdcd9,stroke:#b3392f,color:#123",
    "classDef again fill:#fff2cc,stroke:#b58900,color:#123",
    "classDef next fill:#eeeeee,stroke:#888888,color:#123",
    "classDef slow fill:#dbe7fb,stroke:#3465a4,color:#123",
]


class Chart:
    """Draws a tree. The same question, with the same to follow, is drawn once; outcomes stand where they are reached."""

    def __init__(self) -> None:
        self._names: dict[Tree, str] = {}
        self._count = 0
        self._undrawn: deque[tuple[str, Tree]] = deque()

    def draw(self, start: str, tree: Tree) -> str:
        """The whole chart, from where commands come from."""
        lines = [f"start([{_quoted(start)}]) --> {self._name(tree)}"]
        while self._undrawn:
            name, drawn = self._undrawn.popleft()
            if isinstance(drawn, Leaf):
                lines.append(f"{name}[{_quoted(drawn.text)}]:::{drawn.kind}")
                continue
            lines.append(f"{name}{{{{{_quoted(drawn.text)}}}}}")
            lines += [
                f"{name} -->|{_quoted(answer)}| {self._name(below)}"
                for answer, below in _easiest_first(drawn)
            ]
        return "\n".join(
            ["```mermaid", "flowchart TD", *(f"    {line}" for line in (*lines, *_STYLES)), "```"]
        )

    def _name(self, tree: Tree) -> str:
        known = self._names.get(tree)
        if known is not None:
            return known
        self._count += 1
        name = f"n{self._count}"
        if isinstance(tree, Question):
            self._names[tree] = name
        self._undrawn.append((name, tree))
        return name


def _easiest_first(question: Question) -> list[tuple[str, Tree]]:
    return sorted(question.branches, key=lambda branch: isinstance(branch[1], Question))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'").replace("\n", "<br>") + '"'
