"""Whether a token's tenant is still the one it was issued for."""

from __future__ import annotations

from snavio.control.authority import Principal
from snavio.control.directory import Directory
from snavio.control.models import State
from snavio.control.problems import Forbidden


class Access:
    """Refuses callers whose tenant has gone, or has gone and come back as somebody else."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def confirm(self, principal: Principal) -> None:
        """Raise `Forbidden` unless the caller's tenant, if any, stands."""
        if principal.tenant is None:
            return
        tenant = await self._directory.tenant(principal.tenant)
        if tenant is None or tenant.state is State.DELETING:
            raise Forbidden("tenant-gone", f"Tenant {principal.tenant} is not registered.")
        if principal.registration not in {None, tenant.registration}:
            raise Forbidden("tenant-gone", "The token belongs to an earlier registration of this tenant.")
