"""Which commands each remembered grant let through since the registry was last proved current.

A revocation read later shows which of them came after it: those are reported, one by one.
"""

from __future__ import annotations

from collections import deque

import msgspec

from snavio.registry.changelog import Change


class GrantUse(msgspec.Struct, frozen=True, gc=False):
    """One command let through."""

    source: str
    target: str
    command: str
    command_id: str
    at: float
    age: float
    """How old the knowledge of the grant was."""


class GrantUses:
    """Uses in the order they happened, dropped as soon as no revocation can concern them."""

    def __init__(self, *, most: int = 1_000_000) -> None:
        self._uses: deque[GrantUse] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._uses)

    def note(self, use: GrantUse) -> None:
        """Remember one use."""
        self._uses.append(use)

    def slipped(self, revocations: list[Change]) -> list[tuple[GrantUse, float]]:
        """The uses that came after a revocation of their grant, each with the time of that revocation."""
        if not revocations:
            return []
        revoked: dict[tuple[str, str, str], float] = {}
        for change in revocations:
            _, target, command = change.pk.split("#")
            revoked.setdefault((change.sk, target, command), change.at)
        return [
            (use, revoked[key])
            for use in self._uses
            if (key := (use.source, use.target, use.command)) in revoked and use.at >= revoked[key]
        ]

    def settle(self, as_of: float) -> None:
        """Forget uses from before a moment up to which every change has been read."""
        while self._uses and self._uses[0].at < as_of:
            self._uses.popleft()
