"""Whether a queue is fit to be a target's: the checks of a route's registration, over what SQS says of the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from snavio.control.problems import Fault
from snavio.control.queue_policy import Answer, Request, judge
from snavio.wire.names import Names

_ARN_PARTS = 6
_SEND = "sqs:SendMessage"
_INSPECT = "sqs:GetQueueAttributes"
_AWS_KEY = "alias/aws/sqs"


class Check(msgspec.Struct, frozen=True):
    """One check with its result. `passed` is None where it cannot be judged from the platform's side."""

    check: str
    passed: bool | None
    detail: str


class QueueFound(msgspec.Struct, frozen=True, tag=True):
    """What SQS says of a queue."""

    attributes: Mapping[str, str]


class QueueAbsent(msgspec.Struct, frozen=True, tag=True):
    """There is no such queue."""


class QueueClosed(msgspec.Struct, frozen=True, tag=True):
    """The platform may not look at the queue."""


Look = QueueFound | QueueAbsent | QueueClosed


def arn_check(names: Names, arn: str) -> Check:
    """Whether it is a queue the platform can deliver to at all. Made before looking at it."""
    parts = arn.split(":")
    name = "queue-arn"
    if len(parts) != _ARN_PARTS or parts[0] != "arn" or parts[2] != "sqs" or not all(parts):
        return Check(name, False, "queue_arn is not the ARN of an SQS queue.")
    if parts[3] != names.region:
        return Check(name, False, f"The queue is in {parts[3]}; the platform delivers in {names.region}.")
    if parts[4] == names.account and is_reserved(names, parts[5]):
        return Check(name, False, "The queue is one of the platform's own.")
    return Check(name, True, "It names a queue in the platform's region.")


def is_reserved(names: Names, queue: str) -> bool:
    """Whether a queue of the platform's account carries its own traffic: a route there would loop or forge."""
    working = {names.ingress, names.fast, names.slow, names.replay}
    return queue.removesuffix("-dlq") in working or queue.startswith(names.telemetry(""))


def queue_checks(
    names: Names, queue_arn: str, dlq_arn: str | None, queue: Look, dlq: Look | None
) -> list[Check]:
    """Every check of a queue that was looked at, in the order of the requirements."""
    match queue:
        case QueueAbsent():
            return [Check("queue-exists", False, "There is no such queue.")]
        case QueueClosed():
            who = names.role_arn(names.role("gateway"))
            return [Check("queue-exists", False, f"The queue's policy must let {who} do {_INSPECT}.")]
        case QueueFound(attributes):
            checks = [
                Check("queue-exists", True, "The queue exists."),
                _standard(queue_arn, attributes),
                _encrypted(names, queue_arn, attributes),
                _dead_letters(attributes, dlq_arn, dlq),
            ]
            policy = attributes.get("Policy")
            checks += [
                _permitted(names, queue_arn, policy, role, action)
                for role, action in (("fast", _SEND), ("slow", _SEND), ("monitor", _INSPECT))
            ]
            return checks


def faults_of(checks: Sequence[Check]) -> list[Fault]:
    """The failed checks, as faults of the request."""
    return [
        Fault(check.check, check.detail, "/dlq_arn" if check.check == "dlq-attached" else "/queue_arn")
        for check in checks
        if check.passed is False
    ]


def dlq_of(attributes: Mapping[str, str]) -> str | None:
    """The dead-letter queue a queue is attached to."""
    try:
        redrive = msgspec.json.decode(attributes.get("RedrivePolicy", ""), type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    arn = redrive.get("deadLetterTargetArn")
    return arn if isinstance(arn, str) else None


def _standard(arn: str, attributes: Mapping[str, str]) -> Check:
    fifo = arn.endswith(".fifo") or attributes.get("FifoQueue", "false").lower() == "true"
    detail = "Command targets are Standard queues; this one is FIFO." if fifo else "It is a Standard queue."
    return Check("queue-standard", not fifo, detail)


def _encrypted(names: Names, arn: str, attributes: Mapping[str, str]) -> Check:
    name = "queue-encrypted"
    key = attributes.get("KmsMasterKeyId", "")
    if not key:
        return Check(name, False, "The queue is not encrypted with a KMS key (SSE-KMS).")
    if key == _AWS_KEY and _is_elsewhere(names, arn):
        detail = (
            f"Another account's platform cannot use {_AWS_KEY}; encrypt the queue with a key of your own."
        )
        return Check(name, False, detail)
    if key != _AWS_KEY:
        detail = f"It is encrypted with {key}; that the key's policy admits the dispatchers cannot be seen from here."
        return Check(name, True, detail)
    return Check(name, True, f"It is encrypted with {key}.")


def _dead_letters(attributes: Mapping[str, str], dlq_arn: str | None, dlq: Look | None) -> Check:
    name = "dlq-attached"
    attached = dlq_of(attributes)
    if attached is None:
        return Check(name, False, "The queue has no dead-letter queue.")
    if dlq_arn is not None and dlq_arn != attached:
        return Check(name, False, f"The queue's dead-letter queue is {attached}, not {dlq_arn}.")
    if isinstance(dlq, QueueAbsent):
        return Check(name, False, f"The dead-letter queue {attached} does not exist.")
    return Check(name, True, f"Its dead-letter queue is {attached}.")


def _permitted(names: Names, arn: str, policy: str | None, role: str, action: str) -> Check:
    """In the platform's own account the role's policy is enough unless the queue refuses; elsewhere it must permit."""
    name = f"{role}-may-{'inspect' if action == _INSPECT else 'send'}"
    who = names.role_arn(names.role(role))
    match judge(policy, Request(who, action, arn)):
        case Answer.ALLOWED:
            return Check(name, True, f"The queue's policy lets {who} do {action}.")
        case Answer.DENIED:
            return Check(name, False, f"The queue's policy denies {who} {action}.")
        case Answer.UNKNOWN:
            return Check(
                name, None, f"Whether the queue's policy lets {who} do {action} depends on its conditions."
            )
        case Answer.SILENT:
            if _is_elsewhere(names, arn):
                return Check(name, False, f"The queue's policy must let {who} do {action}.")
            return Check(name, True, f"{who} may do {action} by its own policy; the queue does not object.")


def _is_elsewhere(names: Names, arn: str) -> bool:
    return arn.split(":")[4] != names.account
