"""Who may do what with a tenant's telemetry: the documents, without applying them. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

READ_ACTIONS = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
)
"""What a tenant may do with its own queue and dead-letter queue."""
# GetQueueAttributes and GetQueueUrl stay possible for the platform, which watches the queues.
_READING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:PurgeQueue")


def topic_policy(topic_arn: str, publishers: Sequence[str], root: str) -> str:
    """Only these roles may publish, whatever their own account's policies allow others.

    Here and below the root of the platform's account stays able to, as the way out of any policy gone wrong.
    """
    return _document(
        _statement("PlatformPublishes", "Allow", ["sns:Publish"], topic_arn, _is_one_of(publishers)),
        _statement(
            "NobodyElsePublishes", "Deny", ["sns:Publish"], topic_arn, _is_none_of([*publishers, root])
        ),
    )


def queue_policy(queue_arn: str, topic_arn: str, readers: Sequence[str], root: str) -> str:
    """Only the tenant's roles may read, only its topic may send."""
    return _document(
        _topic_sends(queue_arn, topic_arn),
        _statement(
            "NobodyElseSends",
            "Deny",
            ["sqs:SendMessage"],
            queue_arn,
            {"ArnNotEquals": {"aws:SourceArn": topic_arn}},
        ),
        *_reading(queue_arn, readers, root),
    )


def dlq_policy(dlq_arn: str, topic_arn: str, readers: Sequence[str], root: str) -> str:
    """The topic leaves here what its queue would not take; SQS itself moves what was received too often."""
    return _document(_topic_sends(dlq_arn, topic_arn), *_reading(dlq_arn, readers, root))


def _topic_sends(queue_arn: str, topic_arn: str) -> dict[str, Any]:
    statement = _statement(
        "TopicSends", "Allow", ["sqs:SendMessage"], queue_arn, {"ArnEquals": {"aws:SourceArn": topic_arn}}
    )
    return {**statement, "Principal": {"Service": "sns.amazonaws.com"}}


def _reading(queue_arn: str, readers: Sequence[str], root: str) -> list[dict[str, Any]]:
    refused = _statement("NobodyElseReads", "Deny", list(_READING), queue_arn, _is_none_of([*readers, root]))
    if not readers:
        return [refused]
    return [_statement("TenantReads", "Allow", list(READ_ACTIONS), queue_arn, _is_one_of(readers)), refused]


# Roles are named in conditions and not as principals: a principal must exist when the policy is written, and one that
# is deleted and made anew would no longer match.
def _is_one_of(roles: Sequence[str]) -> dict[str, Any]:
    return {"ArnEquals": {"aws:PrincipalArn": list(roles)}}


def _is_none_of(roles: Sequence[str]) -> dict[str, Any]:
    return {"ArnNotEquals": {"aws:PrincipalArn": list(roles)}}


def _statement(
    name: str, effect: str, actions: list[str], resource: str, condition: dict[str, Any]
) -> dict[str, Any]:
    return {
        "Sid": name,
        "Effect": effect,
        "Principal": "*",
        "Action": actions,
        "Resource": resource,
        "Condition": condition,
    }


def _document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
