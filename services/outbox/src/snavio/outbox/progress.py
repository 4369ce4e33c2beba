"""How far a shard may be checkpointed: behind the oldest record still in hand, never past it."""

from __future__ import annotations

from collections import OrderedDict


class Progress:
    """The records of one shard between being read and being settled. Pure bookkeeping."""

    def __init__(self, checkpoint: str | None = None) -> None:
        self._checkpoint = checkpoint
        self._open: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    def take(self, sequence: str, created_at: float) -> None:
        """A record was read; records come in the order of the shard."""
        self._open[sequence] = (created_at, False)

    def settle(self, sequence: str) -> None:
        """A record needs nothing more; settling it twice does no harm."""
        found = self._open.get(sequence)
        if found is None:
            return
        self._open[sequence] = (found[0], True)
        while self._open:
            first, (_, settled) = next(iter(self._open.items()))
            if not settled:
                return
            self._checkpoint = first
            del self._open[first]

    @property
    def checkpoint(self) -> str | None:
        """The last record such that it and all before it are settled."""
        return self._checkpoint

    @property
    def in_hand(self) -> int:
        """Records not yet behind the checkpoint."""
        return len(self._open)

    def position(self, read_at: float) -> float:
        """Everything written before this time is settled, given that the shard was read to its tip at `read_at`."""
        for created_at, _ in self._open.values():
            return min(created_at, read_at)
        return read_at
