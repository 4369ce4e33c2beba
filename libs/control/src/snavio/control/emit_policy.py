"""The emit role of a tenant: who may assume it, and which sources each of them may put on the bus.

A sender role may only open a session named like itself. The name is then part of `aws:userid`, which nobody can choose
freely, and the policy binds each source to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from snavio.control.models import ROLE_ARN, Service, Tenant
from snavio.control.problems import Fault
from snavio.wire.names import Names

TRUST_CHARACTERS = 2048
"""IAM's default quota for a trust policy; an account may have it raised to 4,096."""
POLICY_CHARACTERS = 10_240
"""IAM's limit for all inline policies of a role together, which splitting them does not raise."""

_is_role_arn = re.compile(ROLE_ARN).match
_encode = msgspec.json.Encoder().encode


class EmitRole(msgspec.Struct, frozen=True):
    """The two documents of an emit role, as compact JSON. Without a policy it may do nothing."""

    trust: str
    policy: str | None


def role_name(arn: str) -> str:
    """The name in a role's ARN, without its path."""
    return arn.rpartition("/")[2]


def senders_of(tenant: Tenant, services: Sequence[Service]) -> list[str]:
    """Every role that may assume the emit role."""
    bound = [service.sender_role_arn for service in services if service.sender_role_arn]
    return sorted({*tenant.sender_role_arns, *bound})


def emit_role(names: Names, tenant: Tenant, services: Sequence[Service]) -> EmitRole:
    """The documents that say exactly what is registered."""
    trusted = [_trust(arn) for arn in senders_of(tenant, services)]
    sources: dict[tuple[str, ...], list[str]] = {}
    for service in services:
        arns = [service.sender_role_arn] if service.sender_role_arn else tenant.sender_role_arns
        senders = tuple(sorted({role_name(arn) for arn in arns}))
        if senders:
            # Sources with the same senders share a statement: the policy has a size limit.
            sources.setdefault(senders, []).append(service.source)
    statements = [_allow(names, senders, sorted(sources[senders])) for senders in sorted(sources)]
    return EmitRole(_document(trusted or [_NOBODY]), _document(statements) if statements else None)


def emit_faults(names: Names, tenant: Tenant, services: Sequence[Service]) -> list[Fault]:
    """What keeps the registered senders from being told apart, or the role from being written."""
    faults: list[Fault] = []
    arns: dict[str, str] = {}
    for arn in senders_of(tenant, services):
        if not _is_role_arn(arn):
            faults.append(
                Fault("bad-sender-role", f"{arn} is not the ARN of an IAM role.", "/sender_role_arn")
            )
        other = arns.setdefault(role_name(arn).lower(), arn)
        if other != arn:
            detail = (
                f"{arn} and {other} have the same name, so the commands of one could pass for the other's."
            )
            faults.append(Fault("ambiguous-sender-role", detail, "/sender_role_arn"))
    documents = emit_role(names, tenant, services)
    if len(documents.trust) > TRUST_CHARACTERS:
        detail = (
            f"Its trust policy would have {len(documents.trust)} of at most {TRUST_CHARACTERS} characters."
        )
        faults.append(Fault("too-many-sender-roles", detail, "/sender_role_arn"))
    if documents.policy and len(documents.policy) > POLICY_CHARACTERS:
        detail = f"Its policy would have {len(documents.policy)} of at most {POLICY_CHARACTERS} characters."
        faults.append(Fault("too-many-services", detail, "/service"))
    return faults


_NOBODY: dict[str, Any] = {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}


def _trust(arn: str) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": {"AWS": arn},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:RoleSessionName": role_name(arn)}},
    }


def _allow(names: Names, senders: tuple[str, ...], sources: list[str]) -> dict[str, Any]:
    users = [f"*:{sender}" for sender in senders]
    return {
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Resource": names.bus_arn,
        "Condition": {
            "StringEquals": {"events:source": sources[0] if len(sources) == 1 else sources},
            "StringLike": {"aws:userid": users[0] if len(users) == 1 else users},
        },
    }


def _document(statements: list[dict[str, Any]]) -> str:
    return _encode({"Version": "2012-10-17", "Statement": statements}).decode()
