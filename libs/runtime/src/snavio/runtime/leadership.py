"""Work that one worker of the fleet does at a time: a lease by name in the leases table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snavio.aws.errors import ConditionFailed
from snavio.aws.values import Absent, AllOf, AnyOf, AtMost, Change, Equals

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.aws.ports import Tables


class Leadership:
    """The right to do one kind of work. Whoever holds it must ask again before it runs out.

    Each change of hands begins a new `term`. A write that carries its term, and is refused where a later one has
    written, cannot come from a leader that was overtaken without noticing.
    """

    def __init__(
        self,
        tables: Tables,
        table: str,
        work: str,
        *,
        me: str,
        seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._tables = tables
        self._table = table
        self._key = {"pk": f"leader#{work}"}
        self._me = me
        self._seconds = seconds
        self._now = now
        self._until = 0.0
        self.term = 0

    @property
    def leads(self) -> bool:
        """Whether the lead, when last asked for, has not run out."""
        return self._now() < self._until

    async def held(self) -> bool:
        """Take or keep the lead; False while another worker has it."""
        now = self._now()
        return await self._keep(now) or await self._take(now)

    async def resign(self) -> None:
        """Let another worker have the lead at once."""
        self._until = 0.0
        try:
            # The row stays: it counts the terms.
            await self._tables.update(
                self._table, self._key, Change(assign={"until": 0}), condition=Equals("owner", self._me)
            )
        except ConditionFailed:
            return

    async def _keep(self, now: float) -> bool:
        if not self.term:
            return False
        mine = AllOf((Equals("owner", self._me), Equals("term", self.term)))
        return await self._write(now, Change(assign={"until": now + self._seconds}), mine)

    async def _take(self, now: float) -> bool:
        # A worker that was started again under its old name need not wait for itself.
        free = AnyOf((Absent("owner"), AtMost("until", now), Equals("owner", self._me)))
        change = Change(assign={"owner": self._me, "until": now + self._seconds}, add={"term": 1})
        return await self._write(now, change, free)

    async def _write(self, now: float, change: Change, condition: AllOf | AnyOf) -> bool:
        try:
            row = await self._tables.update(self._table, self._key, change, condition=condition)
        except ConditionFailed:
            self._until = 0.0
            return False
        term = row.get("term")
        self.term = term if isinstance(term, int) else 0
        self._until = now + self._seconds
        return True
