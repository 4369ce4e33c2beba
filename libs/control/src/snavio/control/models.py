"""What the control plane keeps beside the registry: tenants, their services, who owns which target."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from snavio.domain.models import Name

ROLE_ARN = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/(?:[\x21-\x7e]+/)?[A-Za-z0-9+=,.@_-]{2,64}\Z"
"""A role whose name can serve as the name of its session, which the emit role's trust insists on."""

RoleArn = Annotated[str, msgspec.Meta(pattern=ROLE_ARN)]
Email = Annotated[str, msgspec.Meta(pattern=r"^[^@\s]{1,64}@[^@\s]{1,255}\Z")]


class State(StrEnum):
    """How far a registration or its undoing has come. What is not `active` goes on when the request is repeated."""

    REGISTERING = "registering"
    ACTIVE = "active"
    DELETING = "deleting"


class Tenant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A team with services of its own."""

    tenant: Name
    registration: str
    """Tells this registration from any earlier one of the same name."""
    created_at: float
    state: State = State.REGISTERING
    contact_email: Email | None = None
    sender_role_arns: tuple[RoleArn, ...] = ()
    revision: int = 1
    """Rises with every change of who may emit what."""
    applied: int = 0
    """The revision the emit role was last brought to."""


class Service(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A producer of a tenant."""

    tenant: Name
    service: Name
    created_at: float
    state: State = State.REGISTERING
    sender_role_arn: RoleArn | None = None
    """The one role that may emit it; any of the tenant's when not given."""

    @property
    def source(self) -> str:
        """What stands as the source of its commands."""
        return f"{self.tenant}/{self.service}"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """That a target belongs to a tenant."""

    target: Name
    tenant: Name
    since: float


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change that is not one of the registry, which has a log of its own."""

    id: str
    at: float
    actor: str
    action: str
    subject: str
    tenant: str | None = None
    before: str | None = None
    after: str | None = None
