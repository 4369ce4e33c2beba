"""IAM roles."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from snavio.provisioning.answers import code_of
from snavio.provisioning.policies import document, meaning
from snavio.provisioning.reconcile import State
from snavio.provisioning.resources import Role

_INLINE = "platform"


class RoleResource:
    """A role of the platform. It has one inline policy and no other: a second one is drift."""

    kind = "role"

    def __init__(self, role: Role, iam: Any, *, key_arn: Callable[[str], str]) -> None:
        self.name = role.name
        self._role = role
        self._iam = iam
        self._trust = document((role.trust,))
        self._policy = document(role.policy, key_arn=key_arn)

    def desired(self) -> State:
        """Who may take the role, and all it may do."""
        return {"trust": meaning(self._trust), "policy": meaning(self._policy), "other policies": []}

    async def observe(self) -> State | None:
        """The role and its policies."""
        try:
            found = (await self._iam.get_role(RoleName=self.name))["Role"]
        except ClientError as error:
            if code_of(error) == "NoSuchEntity":
                return None
            raise
        inline, attached = await self._others()
        return {
            "trust": meaning(found["AssumeRolePolicyDocument"]),
            "policy": await self._inline(),
            "other policies": [*inline, *attached],
        }

    async def create(self) -> State:
        """Make it, with nothing it may do yet."""
        await self._iam.create_role(
            RoleName=self.name,
            Description=self._role.description,
            AssumeRolePolicyDocument=json.dumps(self._trust),
        )
        return {"trust": meaning(self._trust), "other policies": []}

    async def correct(self, wrong: frozenset[str]) -> None:
        """Put trust and policy back, and take away what does not belong."""
        if "trust" in wrong:
            await self._iam.update_assume_role_policy(
                RoleName=self.name, PolicyDocument=json.dumps(self._trust)
            )
        if "policy" in wrong:
            await self._iam.put_role_policy(
                RoleName=self.name, PolicyName=_INLINE, PolicyDocument=json.dumps(self._policy)
            )
        if "other policies" in wrong:
            inline, attached = await self._others()
            for name in inline:
                await self._iam.delete_role_policy(RoleName=self.name, PolicyName=name)
            for arn in attached:
                await self._iam.detach_role_policy(RoleName=self.name, PolicyArn=arn)

    async def _inline(self) -> object:
        try:
            answer = await self._iam.get_role_policy(RoleName=self.name, PolicyName=_INLINE)
        except ClientError as error:
            if code_of(error) == "NoSuchEntity":
                return None
            raise
        return meaning(answer["PolicyDocument"])

    async def _others(self) -> tuple[list[str], list[str]]:
        inline = await self._iam.list_role_policies(RoleName=self.name)
        attached = await self._iam.list_attached_role_policies(RoleName=self.name)
        return (
            [name for name in inline["PolicyNames"] if name != _INLINE],
            [policy["PolicyArn"] for policy in attached["AttachedPolicies"]],
        )
