"""One call of an AWS operation, whoever carries it.

SQS, DynamoDB and KMS speak JSON whose names are those of their documentation, so the same parameters and answers serve
aiobotocore and the lean client: the adapters of `snavio.aws.sqs`, `dynamodb` and `kms` are written once above a `Call`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


class Call(Protocol):
    """Carries one operation; raises the errors of `snavio.aws.errors` and no others."""

    async def __call__(self, operation: str, parameters: Mapping[str, Any], answer: type[T], /) -> T:
        """The operation's answer, decoded as the type given."""
        ...
