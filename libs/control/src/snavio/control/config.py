"""What a producer needs to know to send: its sources with their keys, and where everything is."""

from __future__ import annotations

import msgspec

from snavio.control.authority import Principal, Role
from snavio.control.directory import Directory
from snavio.control.keys import IssuedKey, Keys
from snavio.control.models import State
from snavio.control.problems import Forbidden


class SourceKeys(msgspec.Struct, frozen=True):
    """A source with every version of its key still accepted."""

    source: str
    keys: list[IssuedKey]


class TenantConfig:
    """Hands each tenant its own keys, and remembers that it came for them."""

    def __init__(self, directory: Directory, keys: Keys) -> None:
        self._directory = directory
        self._keys = keys

    async def fetch(self, principal: Principal) -> tuple[str, list[SourceKeys]]:
        """The caller's tenant and its sources. Secrets leave the platform here and nowhere else but at registration."""
        tenant = principal.tenant
        if tenant is None or principal.roles.isdisjoint({Role.TENANT, Role.ADMIN}):
            raise Forbidden("forbidden", "Only a tenant's own token may fetch its configuration.")
        found: list[SourceKeys] = []
        for service in await self._directory.services(tenant):
            if service.state is State.DELETING:
                continue
            keys = await self._keys.issued(service.source)
            if keys:
                await self._keys.note_poll(service.source, principal)
                found.append(SourceKeys(service.source, keys))
        return tenant, found
