"""Which commands the platform asked to hold back, and until when."""

from __future__ import annotations

_PRUNE_AT = 1024


class Throttles:
    """Pauses per (target, command). A later end wins; a pause that is over is forgotten."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}

    def pause(self, target: str, name: str, until: float, now: float) -> None:
        """Hold a command back until then."""
        if until <= now:
            return
        if len(self._until) >= _PRUNE_AT:
            self._until = {pair: end for pair, end in self._until.items() if end > now}
        self._until[target, name] = max(until, self._until.get((target, name), 0.0))

    def until(self, target: str, name: str, now: float) -> float | None:
        """When the pause of a command ends; None when there is none."""
        if not self._until:
            return None
        end = self._until.get((target, name))
        if end is not None and end <= now:
            del self._until[target, name]
            return None
        return end
