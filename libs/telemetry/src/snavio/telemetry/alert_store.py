"""A tenant's alert channels and the secret that signs its webhooks, in the control table."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from snavio.aws.errors import ConditionFailed, SnavioError
from snavio.aws.values import Absent
from snavio.telemetry.channels import AlertSettings, problems

if TYPE_CHECKING:
    from snavio.aws.ports import Tables, Vault
    from snavio.aws.values import Item
    from snavio.wire.names import Names


class BadSettings(SnavioError):  # noqa: N818 - reads as what the caller sent
    """Alert channels that cannot be kept; `problems` has a sentence for each fault."""

    def __init__(self, found: list[str]) -> None:
        self.problems = tuple(found)
        super().__init__(" ".join(found))


class AlertStore:
    """Reads and writes what tenants choose. The secret is a KMS data key: it is at rest only as KMS sealed it."""

    def __init__(
        self, tables: Tables, vault: Vault, names: Names, *, insecure_webhooks: bool = False
    ) -> None:
        self._tables = tables
        self._vault = vault
        self._names = names
        self._insecure = insecure_webhooks

    async def settings(self, tenant: str) -> AlertSettings | None:
        """What the tenant chose; None when it never chose."""
        item = await self._tables.get(self._names.control, _key(tenant, "channels"), consistent=False)
        return None if item is None else msgspec.convert(item, AlertSettings)

    async def choose(self, tenant: str, settings: AlertSettings) -> None:
        """Replace the tenant's choice. Raises `BadSettings`."""
        if found := problems(settings, insecure_webhooks=self._insecure):
            raise BadSettings(found)
        item = cast("Item", {**_key(tenant, "channels"), **msgspec.to_builtins(settings)})
        await self._tables.put(self._names.control, item)

    async def secret(self, tenant: str) -> bytes:
        """The tenant's signing secret, made when first asked for."""
        key = _key(tenant, "secret")
        item = await self._tables.get(self._names.control, key)
        if item is not None:
            return await self._vault.open_data_key(cast("bytes", item["sealed"]), context=_context(tenant))
        try:
            return await self._new_secret(tenant, first=True)
        except ConditionFailed:
            return await self.secret(tenant)

    async def replace_secret(self, tenant: str) -> bytes:
        """A new signing secret; the old one signs nothing from now on."""
        return await self._new_secret(tenant, first=False)

    async def _new_secret(self, tenant: str, *, first: bool) -> bytes:
        fresh = await self._vault.new_data_key(self._names.secrets_key, context=_context(tenant))
        item: Item = {**_key(tenant, "secret"), "sealed": fresh.sealed}
        await self._tables.put(self._names.control, item, condition=Absent("pk") if first else None)
        return fresh.plaintext


def _key(tenant: str, what: str) -> dict[str, str]:
    return {"pk": f"alerts#{tenant}", "sk": what}


def _context(tenant: str) -> dict[str, str]:
    return {"purpose": "snavio-alert-signing", "tenant": tenant}
