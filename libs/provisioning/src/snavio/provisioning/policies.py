"""IAM policy documents as values, and when two of them say the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

Conditions: TypeAlias = dict[str, dict[str, tuple[str, ...]]]
Document: TypeAlias = dict[str, Any]

KEY_ALIAS = "alias/"
"""A resource that starts so stands for the ARN of the key the alias names, known only once the key exists."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement. `principals` is empty in the policy of a role, which speaks of the role itself."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ()
    not_resources: tuple[str, ...] = ()
    effect: Literal["Allow", "Deny"] = "Allow"
    principals: dict[str, tuple[str, ...]] = {}
    conditions: Conditions = {}


def document(statements: Sequence[Statement], *, key_arn: Callable[[str], str] | None = None) -> Document:
    """The policy document of the statements, with key aliases resolved."""

    def resolved(resources: Sequence[str]) -> list[str]:
        return [key_arn(name) if key_arn and name.startswith(KEY_ALIAS) else name for name in resources]

    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": statement.sid,
                "Effect": statement.effect,
                **({"Principal": _principal(statement.principals)} if statement.principals else {}),
                "Action": list(statement.actions),
                **({"Resource": resolved(statement.resources)} if statement.resources else {}),
                **({"NotResource": resolved(statement.not_resources)} if statement.not_resources else {}),
                **({"Condition": _lists(statement.conditions)} if statement.conditions else {}),
            }
            for statement in statements
        ],
    }


def _principal(principals: Mapping[str, Sequence[str]]) -> object:
    return "*" if principals == {"*": ("*",)} else {kind: list(names) for kind, names in principals.items()}


def _lists(conditions: Conditions) -> dict[str, dict[str, list[str]]]:
    return {
        operator: {key: list(values) for key, values in block.items()}
        for operator, block in conditions.items()
    }


def meaning(policy: object) -> object:
    """A form of a policy in which two that say the same are equal.

    AWS gives documents back as text or as objects, a list of one as its element, and lists in any order.
    """
    if isinstance(policy, str):
        try:
            return meaning(json.loads(policy))
        except ValueError:
            return policy
    if not isinstance(policy, Mapping):
        return policy
    statements = cast("Mapping[str, object]", policy).get("Statement", [])
    listed = cast("list[object]", statements if isinstance(statements, list) else [statements])
    return sorted((_sorted(statement) for statement in listed), key=repr)


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {key: _sorted(fields[key]) for key in sorted(fields)}
    # Below the statement there are only texts and lists of texts, and a text alone means a list of it.
    listed = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else [value]
    return sorted(str(each) for each in listed)
