"""Work that one worker of the fleet does at a time: a lease by name in the leases table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snavio.aws.errors import ConditionFailed
from snavio.aws.values import Absent, AnyOf, AtMost, Change, Equals

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.aws.ports import Tables


class Leadership:
    """The right to do one kind of work. Whoever holds it must ask again before it runs out."""

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

    async def held(self) -> bool:
        """Take or keep the lead; False while another worker has it."""
        now = self._now()
        free = AnyOf((Absent("owner"), Equals("owner", self._me), AtMost("until", now)))
        change = Change(assign={"owner": self._me, "until": now + self._seconds})
        try:
            await self._tables.update(self._table, self._key, change, condition=free)
        except ConditionFailed:
            return False
        return True

    async def resign(self) -> None:
        """Let another worker have the lead at once."""
        try:
            await self._tables.delete(self._table, self._key, condition=Equals("owner", self._me))
        except ConditionFailed:
            return
