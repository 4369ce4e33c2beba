"""What the ARN of a queue says."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from snavio.aws.errors import Permanent

_PARTS = 6


class QueueArn(NamedTuple):
    """The parts of `arn:<partition>:sqs:<region>:<account>:<name>`."""

    partition: str
    region: str
    account: str
    name: str


# Asked with every command; an ARN is taken apart once while its queue is in use.
@lru_cache(maxsize=16_384)
def parse_queue_arn(arn: str) -> QueueArn:
    """Its parts; `Permanent` when it is not the ARN of a queue."""
    parts = arn.split(":")
    if len(parts) != _PARTS or parts[0] != "arn" or parts[2] != "sqs" or not all(parts):
        raise Permanent(f"{arn!r} is not the ARN of a queue.", code="InvalidArn")
    return QueueArn(parts[1], parts[3], parts[4], parts[5])
