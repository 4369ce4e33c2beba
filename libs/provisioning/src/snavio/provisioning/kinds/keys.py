"""KMS keys."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from snavio.aws.errors import Permanent
from snavio.provisioning.answers import code_of
from snavio.provisioning.policies import Statement, document, meaning
from snavio.provisioning.reconcile import State
from snavio.provisioning.resources import Key

_SPECS = {"seal": ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"), "sign": ("ECC_NIST_P256", "SIGN_VERIFY")}


class KeyResource:
    """A key of the platform; `arn` is known once it has been observed or created."""

    kind = "key"

    def __init__(self, key: Key, kms: Any, *, account: str, root: str) -> None:
        self.name = key.alias
        self.arn: str | None = None
        self._key = key
        self._kms = kms
        self._policy = document(_policy(key, account=account, root=root))

    def desired(self) -> State:
        """The key's policy, and a yearly rotation of what can be rotated."""
        rotation = {"rotation": True} if self._key.usage == "seal" else {}
        return {"policy": meaning(self._policy), **rotation}

    async def observe(self) -> State | None:
        """The key behind the alias."""
        try:
            described = (await self._kms.describe_key(KeyId=self.name))["KeyMetadata"]
        except ClientError as error:
            if code_of(error) == "NotFoundException":
                return None
            raise
        self.arn = str(described["Arn"])
        if (described.get("KeySpec"), described.get("KeyUsage")) != _SPECS[self._key.usage]:
            raise Permanent(
                f"The alias {self.name} names a key of another kind: give it to a key of the right kind."
            )
        policy = await self._kms.get_key_policy(KeyId=self.arn, PolicyName="default")
        return {"policy": meaning(policy["Policy"]), **(await self._rotation())}

    async def create(self) -> State:
        """Make a key and give it the alias; when another was first, keep theirs."""
        spec, usage = _SPECS[self._key.usage]
        made = await self._kms.create_key(
            Description=self._key.description, KeySpec=spec, KeyUsage=usage, Policy=json.dumps(self._policy)
        )
        self.arn = str(made["KeyMetadata"]["Arn"])
        try:
            await self._kms.create_alias(AliasName=self.name, TargetKeyId=self.arn)
        except ClientError as error:
            if code_of(error) != "AlreadyExistsException":
                raise
            await self._kms.schedule_key_deletion(KeyId=self.arn, PendingWindowInDays=7)
            return await self.observe() or {}
        return {"policy": meaning(self._policy)}

    async def correct(self, wrong: frozenset[str]) -> None:
        """Put the policy back, turn rotation on."""
        if "policy" in wrong:
            await self._kms.put_key_policy(
                KeyId=self.arn, PolicyName="default", Policy=json.dumps(self._policy)
            )
        if "rotation" in wrong:
            await self._kms.enable_key_rotation(KeyId=self.arn)

    async def _rotation(self) -> State:
        if self._key.usage != "seal":
            return {}
        return {"rotation": (await self._kms.get_key_rotation_status(KeyId=self.arn))["KeyRotationEnabled"]}


def _policy(key: Key, *, account: str, root: str) -> tuple[Statement, ...]:
    # The account decides through IAM who may use the key; without this statement nobody could, ever.
    owner = Statement(sid="Account", principals={"AWS": (root,)}, actions=("kms:*",), resources=("*",))
    if not key.services:
        return (owner,)
    services = Statement(
        sid="Services",
        principals={"Service": key.services},
        actions=("kms:Decrypt", "kms:GenerateDataKey"),
        resources=("*",),
        conditions={"StringEquals": {"aws:SourceAccount": (account,)}},
    )
    return (owner, services)
