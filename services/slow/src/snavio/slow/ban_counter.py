"""Counting warm-path bans until they become a ban everywhere."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from snavio.aws.ports import Tables
from snavio.aws.values import SortRange
from snavio.domain.fairness import GlobalBanPolicy, goes_global
from snavio.domain.models import Ban, BanMode
from snavio.registry.store import RegistryStore
from snavio.wire.commands import Admitted, Dominance

_MOST_REMEMBERED = 10_000


class BanCounter:
    """Each ban counts once, however many commands and workers report it: its row is keyed by its id."""

    def __init__(
        self,
        tables: Tables,
        table: str,
        store: RegistryStore,
        policy: GlobalBanPolicy,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._tables = tables
        self._table = table
        self._store = store
        self._policy = policy
        self._clock = clock
        self._noted: OrderedDict[str, None] = OrderedDict()

    async def note(self, command: Admitted, dominance: Dominance) -> Ban | None:
        """Count a ban; the ban everywhere it led to, where it did."""
        if dominance.ban_id in self._noted:
            return None
        now = self._clock()
        pk = f"{command.source}#{command.target}#{command.name}"
        await self._tables.put(
            self._table,
            {
                "pk": pk,
                "sk": f"{dominance.opened_at:017.6f}#{dominance.ban_id}",
                "opened_at": dominance.opened_at,
                "source_share": dominance.source_share,
                "competing_share": dominance.competing_share,
                "expires_at": int(dominance.opened_at + self._policy.within_seconds) + 60,
            },
        )
        since = f"{now - self._policy.within_seconds:017.6f}"
        page = await self._tables.query(self._table, ("pk", pk), sort=SortRange("sk", low=since))
        opened = [float(at) for item in page.items if isinstance(at := item.get("opened_at"), int | float)]
        placed = await self._place(command, now) if goes_global(opened, self._policy, now) else None
        self._remember(dominance.ban_id)
        return placed

    async def _place(self, command: Admitted, now: float) -> Ban | None:
        ban = Ban(
            source=command.source,
            mode=BanMode.WARM,
            target=command.target,
            command=command.name,
            until=now + self._policy.ban_seconds,
            reason=f"{self._policy.bans} warm-path bans within {self._policy.within_seconds:g} s",
        )
        return ban if await self._store.add_ban(ban, actor="slow") is not None else None

    def _remember(self, ban_id: str) -> None:
        self._noted[ban_id] = None
        while len(self._noted) > _MOST_REMEMBERED:
            self._noted.popitem(last=False)
