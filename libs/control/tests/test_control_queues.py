from __future__ import annotations

import json

import pytest

from snavio.control.queue_policy import Answer, Request, judge
from snavio.control.route_checks import (
    QueueAbsent,
    QueueClosed,
    QueueFound,
    arn_check,
    faults_of,
    queue_checks,
)
from snavio.wire.names import Names

NAMES = Names(account="111111111111")
HERE = "arn:aws:sqs:us-east-1:111111111111:bot"
ELSEWHERE = "arn:aws:sqs:us-east-1:222222222222:bot"
FAST = "arn:aws:iam::111111111111:role/snavio-fast"
SEND = Request(FAST, "sqs:SendMessage", ELSEWHERE)


def policy(*statements: dict) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def says(effect: str = "Allow", **other: object) -> dict:
    return {
        "Effect": effect,
        "Principal": {"AWS": FAST},
        "Action": "sqs:SendMessage",
        "Resource": "*",
        **other,
    }


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (None, Answer.SILENT),
        ("not json", Answer.UNKNOWN),
        ('"text"', Answer.UNKNOWN),
        (policy(), Answer.SILENT),
        (policy(says()), Answer.ALLOWED),
        (json.dumps({"Statement": says()}), Answer.ALLOWED),
        (policy(says(Principal="*")), Answer.ALLOWED),
        (policy(says(Principal={"AWS": "111111111111"})), Answer.ALLOWED),
        (policy(says(Principal={"AWS": ["arn:aws:iam::111111111111:root"]})), Answer.ALLOWED),
        (policy(says(Principal={"AWS": "arn:aws:iam::111111111111:role/other"})), Answer.SILENT),
        (policy(says(Principal={"Service": "sns.amazonaws.com"})), Answer.SILENT),
        (policy(says(Action=["SQS:Send*"])), Answer.ALLOWED),
        (policy(says(Action="sqs:ReceiveMessage")), Answer.SILENT),
        (policy(says(Resource="arn:aws:sqs:*:222222222222:b?t")), Answer.ALLOWED),
        (policy(says(Resource=HERE)), Answer.SILENT),
        (policy(says(), says("Deny")), Answer.DENIED),
        (
            policy({"Effect": "Deny", "NotPrincipal": {"AWS": FAST}, "Action": "*", "Resource": "*"}),
            Answer.SILENT,
        ),
        (
            policy(
                {"Effect": "Deny", "Principal": "*", "NotAction": "sqs:SendMessage", "Resource": "*"}, says()
            ),
            Answer.ALLOWED,
        ),
        (
            policy(says(Condition={"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/snavio-*"}})),
            Answer.ALLOWED,
        ),
        (policy(says(Condition={"ArnEquals": {"aws:PrincipalArn": "arn:aws:iam::1:role/x"}})), Answer.SILENT),
        (
            policy(says(), says("Deny", Condition={"ArnNotEquals": {"aws:PrincipalArn": [FAST]}})),
            Answer.ALLOWED,
        ),
        (policy(says(), says("Deny", Condition={"Bool": {"aws:SecureTransport": "false"}})), Answer.ALLOWED),
        (policy(says(Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}})), Answer.UNKNOWN),
        (
            policy(says(), says("Deny", Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})),
            Answer.UNKNOWN,
        ),
    ],
)
def test_a_queue_policy_is_read_as_aws_would_and_never_guessed(document, answer):
    assert judge(document, SEND) is answer


def attributes(**changed: str | None) -> dict[str, str]:
    arn = changed.pop("arn", HERE)
    fit = {
        "KmsMasterKeyId": "alias/own",
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": f"{arn}-dlq", "maxReceiveCount": 3}),
        **changed,
    }
    return {name: value for name, value in fit.items() if value is not None}


GRANTING = policy(
    says(Principal={"AWS": [FAST, FAST.replace("fast", "slow")]}),
    says(Principal={"AWS": FAST.replace("fast", "monitor")}, Action="sqs:GetQueueAttributes"),
)


@pytest.mark.parametrize(
    ("arn", "dlq_arn", "queue", "dlq", "failed"),
    [
        (HERE, None, QueueFound(attributes()), QueueFound({}), []),
        (HERE, f"{HERE}-dlq", QueueFound(attributes()), QueueClosed(), []),
        (HERE, None, QueueAbsent(), None, ["queue-exists"]),
        (HERE, None, QueueClosed(), None, ["queue-exists"]),
        (HERE, None, QueueFound(attributes(FifoQueue="true")), None, ["queue-standard"]),
        (f"{HERE}.fifo", None, QueueFound(attributes()), None, ["queue-standard"]),
        (HERE, None, QueueFound(attributes(KmsMasterKeyId=None)), None, ["queue-encrypted"]),
        (HERE, None, QueueFound(attributes(RedrivePolicy=None)), None, ["dlq-attached"]),
        (HERE, None, QueueFound(attributes(RedrivePolicy="[]")), None, ["dlq-attached"]),
        (HERE, f"{HERE}-other", QueueFound(attributes()), QueueFound({}), ["dlq-attached"]),
        (HERE, None, QueueFound(attributes()), QueueAbsent(), ["dlq-attached"]),
        (HERE, None, QueueFound(attributes(Policy=policy(says("Deny")))), None, ["fast-may-send"]),
        (
            HERE,
            None,
            QueueFound({}),
            None,
            ["queue-encrypted", "dlq-attached"],
        ),
        (
            ELSEWHERE,
            None,
            QueueFound(attributes(arn=ELSEWHERE)),
            None,
            ["fast-may-send", "slow-may-send", "monitor-may-inspect"],
        ),
        (ELSEWHERE, None, QueueFound(attributes(arn=ELSEWHERE, Policy=GRANTING)), None, []),
        (
            ELSEWHERE,
            None,
            QueueFound(attributes(arn=ELSEWHERE, Policy=GRANTING, KmsMasterKeyId="alias/aws/sqs")),
            None,
            ["queue-encrypted"],
        ),
    ],
)
def test_each_fault_of_a_queue_is_named_and_nothing_else(arn, dlq_arn, queue, dlq, failed):
    assert [fault.kind for fault in faults_of(queue_checks(NAMES, arn, dlq_arn, queue, dlq))] == failed


def test_a_permission_that_cannot_be_judged_is_reported_as_such_and_refuses_nothing():
    unsure = policy(says(Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}}))
    checks = queue_checks(NAMES, HERE, None, QueueFound(attributes(Policy=unsure)), None)
    assert [check.check for check in checks if check.passed is None] == ["fast-may-send"]
    assert faults_of(checks) == []


@pytest.mark.parametrize(
    ("arn", "passes"),
    [
        (HERE, True),
        (ELSEWHERE, True),
        ("https://sqs.us-east-1.amazonaws.com/1/bot", False),
        ("arn:aws:sns:us-east-1:111111111111:bot", False),
        ("arn:aws:sqs:eu-west-1:111111111111:bot", False),
        ("arn:aws:sqs:us-east-1:111111111111:snavio-ingress", False),
        ("arn:aws:sqs:us-east-1:111111111111:snavio-fast", False),
        ("arn:aws:sqs:us-east-1:111111111111:snavio-slow-dlq", False),
        ("arn:aws:sqs:us-east-1:111111111111:snavio-telemetry-acme", False),
        ("arn:aws:sqs:us-east-1:222222222222:snavio-ingress", True),
        ("arn:aws:sqs:us-east-1:111111111111:snavio-fastest", True),
    ],
)
def test_a_route_cannot_lead_into_the_platform_or_out_of_its_reach(arn, passes):
    assert arn_check(NAMES, arn).passed is passes
