"""Who is asking, and what they may touch."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from snavio.control.problems import Forbidden


class Role(StrEnum):
    """What a caller was given."""

    ADMIN = "Admin"
    """Everything, for every tenant."""
    VIEWER = "Viewer"
    """Reading everything but secrets."""
    TENANT = "Tenant"
    """One tenant's own services, targets and configuration."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller. Naming a tenant always narrows: whatever the roles, nothing beyond it is reachable."""

    subject: str
    roles: frozenset[Role]
    tenant: str | None = None
    registration: str | None = None
    """Which registration of the tenant the caller belongs to, where known: a name may be registered anew."""

    @property
    def is_admin(self) -> bool:
        """Whether the caller runs the platform."""
        return Role.ADMIN in self.roles and self.tenant is None

    def require_admin(self) -> None:
        """Raise `Forbidden` unless the caller runs the platform."""
        if not self.is_admin:
            raise Forbidden("forbidden", "This is for administrators of the platform.")

    def acts_for(self, tenant: str) -> bool:
        """Whether the caller may change what belongs to a tenant."""
        own = self.tenant == tenant and not self.roles.isdisjoint({Role.TENANT, Role.ADMIN})
        return self.is_admin or own

    def require_tenant(self, tenant: str) -> None:
        """Raise `Forbidden` unless the caller may change what belongs to the tenant."""
        if not self.acts_for(tenant):
            raise Forbidden("forbidden", f"This belongs to tenant {tenant}.")

    def sees(self, tenant: str | None) -> bool:
        """Whether the caller may read what belongs to a tenant, or to the platform when None."""
        if self.tenant is None:
            return not self.roles.isdisjoint({Role.ADMIN, Role.VIEWER})
        return bool(self.roles) and self.tenant == tenant

    def require_viewer(self) -> None:
        """Raise `Forbidden` unless the caller may read anything at all."""
        if not self.sees(self.tenant):
            raise Forbidden("forbidden", "None of the caller's roles allows this.")


def system(name: str) -> Principal:
    """The platform itself, acting on schedule."""
    return Principal(subject=f"snavio:{name}", roles=frozenset({Role.ADMIN}))
