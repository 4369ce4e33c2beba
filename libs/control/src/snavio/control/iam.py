"""`EmitRoles` on IAM."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from snavio.aws.boto.faults import translated
from snavio.aws.errors import Permanent
from snavio.control.emit_policy import EmitRole
from snavio.control.problems import Fault, Invalid

_POLICY = "emit"
_SESSION_SECONDS = 3600


class IamEmitRoles:
    """Emit roles in the platform's account. Each has one inline policy, so that a change of it is one call."""

    def __init__(self, client: Callable[[str], Awaitable[Any]]) -> None:
        self._client = client

    async def ensure(self, name: str, documents: EmitRole, *, tenant: str) -> None:
        """Make the role say exactly this. Raises `Invalid` when IAM does not accept a sender."""
        iam = await self._client("iam")
        try:
            if not await self._create(iam, name, documents.trust, tenant):
                with translated("UpdateAssumeRolePolicy"):
                    await iam.update_assume_role_policy(RoleName=name, PolicyDocument=documents.trust)
        except Permanent as refused:
            if refused.code == "MalformedPolicyDocument":
                # IAM looks principals up: this is how it says that a role does not exist.
                fault = Fault("unknown-sender-role", f"IAM knows no such role: {refused}", "/sender_role_arn")
                raise Invalid(
                    "invalid-request", "A sender role is not accepted by IAM.", [fault]
                ) from refused
            raise
        if documents.policy is None:
            await self.revoke(name)
        else:
            with translated("PutRolePolicy"):
                await iam.put_role_policy(RoleName=name, PolicyName=_POLICY, PolicyDocument=documents.policy)

    async def revoke(self, name: str) -> None:
        """Take every permission from the role, and so from its sessions, at once."""
        iam = await self._client("iam")
        await _unless_gone(
            "DeleteRolePolicy", lambda: iam.delete_role_policy(RoleName=name, PolicyName=_POLICY)
        )

    async def remove(self, name: str) -> None:
        """Remove the role; no error when it is gone."""
        await self.revoke(name)
        iam = await self._client("iam")
        await _unless_gone("DeleteRole", lambda: iam.delete_role(RoleName=name))

    async def _create(self, iam: Any, name: str, trust: str, tenant: str) -> bool:
        try:
            with translated("CreateRole"):
                await iam.create_role(
                    RoleName=name,
                    AssumeRolePolicyDocument=trust,
                    Description=f"Puts commands of tenant {tenant} on the bus.",
                    MaxSessionDuration=_SESSION_SECONDS,
                    Tags=[{"Key": "snavio:tenant", "Value": tenant}],
                )
        except Permanent as refused:
            if refused.code in {"EntityAlreadyExists", "EntityAlreadyExistsException"}:
                return False
            raise
        return True


async def _unless_gone(operation: str, act: Callable[[], Awaitable[Any]]) -> None:
    try:
        with translated(operation):
            await act()
    except Permanent as refused:
        if refused.code not in {"NoSuchEntity", "NoSuchEntityException"}:
            raise
