"""What can be known of a queue's own policy: whether it lets a role do something.

A partial reading on purpose. Statements whose conditions cannot be judged from here are neither counted as permission nor
as refusal; the answer is then that it is not known.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from enum import Enum
from typing import Any, cast

import msgspec


class Answer(Enum):
    """Whether the policy lets it happen."""

    ALLOWED = "allowed"
    DENIED = "denied"
    SILENT = "silent"
    """It says nothing about it: in the queue's own account the role's policy decides, elsewhere it is refused."""
    UNKNOWN = "unknown"
    """It depends on something that cannot be judged beforehand."""


class Request(msgspec.Struct, frozen=True):
    """Who wants to do what to which queue."""

    role_arn: str
    action: str
    queue_arn: str


def judge(policy: str | None, request: Request) -> Answer:
    """What the policy says to the request. A policy that cannot be read is not known."""
    if not policy:
        return Answer.SILENT
    try:
        document: Any = msgspec.json.decode(policy)
        statements: list[Any] = _listed(document["Statement"])
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        return Answer.UNKNOWN
    allowed = denied = False
    unknown = False
    for statement in statements:
        if not isinstance(statement, dict) or not _concerns(cast("dict[str, Any]", statement), request):
            continue
        met = _conditions_met(cast("dict[str, Any]", statement).get("Condition"), request)
        denies = cast("dict[str, Any]", statement).get("Effect") == "Deny"
        if met is None:
            unknown = True
        elif met:
            denied, allowed = denied or denies, allowed or not denies
    if denied:
        return Answer.DENIED
    if unknown:
        return Answer.UNKNOWN
    return Answer.ALLOWED if allowed else Answer.SILENT


def _concerns(statement: dict[str, Any], request: Request) -> bool:
    return (
        _principal_matches(statement, request.role_arn)
        and _matches(statement, "Action", request.action, fold=True)
        and _matches(statement, "Resource", request.queue_arn, fold=False)
    )


def _principal_matches(statement: dict[str, Any], role_arn: str) -> bool:
    if "NotPrincipal" in statement:
        return not _is_among(statement["NotPrincipal"], role_arn)
    return _is_among(statement.get("Principal"), role_arn)


def _is_among(principal: object, role_arn: str) -> bool:
    if principal == "*":
        return True
    named: list[Any] = (
        _listed(cast("dict[str, Any]", principal).get("AWS", [])) if isinstance(principal, dict) else []
    )
    account = role_arn.split(":")[4]
    root = f"{role_arn.partition(':iam:')[0]}:iam::{account}:root"
    return any(name in ("*", account, root, role_arn) for name in named)


def _matches(statement: dict[str, Any], what: str, value: str, *, fold: bool) -> bool:
    if f"Not{what}" in statement:
        return not _any_like(_listed(statement[f"Not{what}"]), value, fold=fold)
    # In a queue's policy a resource left out means the queue.
    return _any_like(_listed(statement.get(what, "*")), value, fold=fold)


def _any_like(patterns: Iterable[Any], value: str, *, fold: bool) -> bool:
    given = value.lower() if fold else value
    return any(
        fnmatch.fnmatchcase(given, _literal(pattern.lower() if fold else pattern))
        for pattern in patterns
        if isinstance(pattern, str)
    )


def _literal(pattern: str) -> str:
    # IAM knows * and ? only; fnmatch also knows sets.
    return pattern.replace("[", "[[]")


def _conditions_met(conditions: object, request: Request) -> bool | None:
    """Whether all are met; None when one cannot be judged and no other fails."""
    if conditions is None:
        return True
    if not isinstance(conditions, dict) or not all(
        isinstance(block, dict) for block in cast("dict[str, Any]", conditions).values()
    ):
        return None
    verdicts = [
        _condition_met(operator, key, _listed(values), request)
        for operator, block in cast("dict[str, dict[str, Any]]", conditions).items()
        for key, values in block.items()
    ]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _condition_met(operator: str, key: str, values: list[Any], request: Request) -> bool | None:
    facts = {
        "aws:principalarn": request.role_arn,
        "aws:principalaccount": request.role_arn.split(":")[4],
        "aws:securetransport": "true",
        "aws:principaltype": "AssumedRole",
        "aws:principalisawsservice": "false",
    }
    fact = facts.get(key.lower())
    if fact is None:
        return None
    name = operator.removesuffix("IfExists").lower()
    negated = "not" in name
    if name.replace("not", "") in {"stringequals", "bool"}:
        found = fact in [str(value).lower() if name == "bool" else value for value in values]
    elif name.replace("not", "") in {"arnequals", "arnlike", "stringlike"}:
        found = _any_like(values, fact, fold=False)
    else:
        return None
    return found != negated


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
