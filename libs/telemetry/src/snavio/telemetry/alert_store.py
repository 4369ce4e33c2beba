"""A tenant's alert channels and the secret that signs its webhooks, in the control table."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, cast

import msgspec

from snavio.aws.errors import ConditionFailed, SnavioError
from snavio.aws.values import Absent
from snavio.telemetry.channels import AlertSettings, Webhook, problems

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
        """Replace the tenant's choice. Raises `BadSettings`. A tenant with a webhook gets a signing secret with it."""
        if found := problems(settings, insecure_webhooks=self._insecure):
            raise BadSettings(found)
        if any(isinstance(channel, Webhook) for chosen in settings.channels.values() for channel in chosen):
            await self._make_secret(tenant, only_first=True)
        item = cast(
            "Item", {**_key(tenant, "channels"), **msgspec.json.decode(msgspec.json.encode(settings))}
        )
        await self._tables.put(self._names.control, item)

    async def secret(self, tenant: str) -> bytes | None:
        """What signs the tenant's webhooks; None when it never had one."""
        item = await self._tables.get(self._names.control, _key(tenant, "secret"))
        if item is None:
            return None
        return await self._vault.open_data_key(cast("bytes", item["sealed"]), context=_context(tenant))

    async def replace_secret(self, tenant: str) -> None:
        """Make a new signing secret; the old one signs nothing from now on."""
        await self._make_secret(tenant, only_first=False)

    async def _make_secret(self, tenant: str, *, only_first: bool) -> None:
        key = _key(tenant, "secret")
        if only_first and await self._tables.get(self._names.control, key) is not None:
            return
        fresh = await self._vault.new_data_key(self._names.secrets_key, context=_context(tenant))
        item: Item = {**key, "sealed": fresh.sealed}
        with suppress(ConditionFailed):  # somebody else made the first one meanwhile
            await self._tables.put(self._names.control, item, condition=Absent("pk") if only_first else None)


def _key(tenant: str, what: str) -> dict[str, str]:
    return {"pk": f"alerts#{tenant}", "sk": what}


def _context(tenant: str) -> dict[str, str]:
    return {"purpose": "snavio-alert-signing", "tenant": tenant}
