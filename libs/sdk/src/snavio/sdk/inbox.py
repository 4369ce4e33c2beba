"""A queue as its reader sees it, and SQS behind it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, cast

import msgspec
from botocore.exceptions import ClientError

from snavio.sdk.aws_session import refusal

MAX_BATCH = 10
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_REASON_CHARACTERS = 1024
_LONGEST_HOLD = 43_200


class Message(msgspec.Struct, frozen=True):
    """A message in hand."""

    id: str
    receipt: str
    body: str
    receives: int = 1
    """How often it has been received, this time included."""


class Redrive(msgspec.Struct, frozen=True):
    """What the queue does with a message nobody finishes."""

    dlq_url: str | None = None
    max_receives: int | None = None


class Inbox(Protocol):
    """What a reader may do with its queue. Calls raise when the queue cannot be reached."""

    async def redrive(self) -> Redrive:
        """Where messages go in the end."""
        ...

    async def receive(
        self, *, max_messages: int, wait_seconds: int, visibility_seconds: int
    ) -> list[Message]:
        """Messages, or none when the wait is over."""
        ...

    async def delete(self, receipts: Sequence[str]) -> list[str]:
        """Delete up to ten; the receipts that could not be."""
        ...

    async def hold(self, receipts: Sequence[str], seconds: int) -> list[str]:
        """Keep up to ten invisible for so long from now, or 0 to hand back; the receipts that could not be."""
        ...

    async def bury(self, message: Message, dlq_url: str, reason: str) -> None:
        """Put a copy in the dead-letter queue with the reason."""
        ...


class SqsInbox:
    """An SQS queue by its URL."""

    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._url = queue_url

    async def redrive(self) -> Redrive:
        """Read the queue's redrive policy; a reader that may not see it has none."""
        try:
            answer = await self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=["RedrivePolicy"]
            )
            text = answer.get("Attributes", {}).get("RedrivePolicy")
            if not text:
                return Redrive()
            policy = cast("dict[str, Any]", json.loads(text))
            _, _, account, name = str(policy["deadLetterTargetArn"]).rsplit(":", 3)
            found = await self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
        except ClientError as error:
            if refusal(error).code not in _DENIED:
                raise
            return Redrive()
        return Redrive(found["QueueUrl"], int(policy["maxReceiveCount"]))

    async def receive(
        self, *, max_messages: int, wait_seconds: int, visibility_seconds: int
    ) -> list[Message]:
        """One long poll."""
        answer = await self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=max_messages,
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=visibility_seconds,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [
            Message(
                found["MessageId"],
                found["ReceiptHandle"],
                found["Body"],
                int(found.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
            )
            for found in answer.get("Messages", ())
        ]

    async def delete(self, receipts: Sequence[str]) -> list[str]:
        """One DeleteMessageBatch."""
        entries = [{"Id": str(n), "ReceiptHandle": receipt} for n, receipt in enumerate(receipts)]
        answer = await self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        return _failed(receipts, answer)

    async def hold(self, receipts: Sequence[str], seconds: int) -> list[str]:
        """One ChangeMessageVisibilityBatch."""
        entries = [
            {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": min(seconds, _LONGEST_HOLD)}
            for n, receipt in enumerate(receipts)
        ]
        answer = await self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
        return _failed(receipts, answer)

    async def bury(self, message: Message, dlq_url: str, reason: str) -> None:
        """Send a copy with what a person will want to know."""
        told = {
            "snavio.reason": reason[:_REASON_CHARACTERS] or "unknown",
            "snavio.receives": str(message.receives),
        }
        await self._client.send_message(
            QueueUrl=dlq_url,
            MessageBody=message.body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value} for name, value in told.items()
            },
        )


def _failed(receipts: Sequence[str], answer: Any) -> list[str]:
    return [receipts[int(entry["Id"])] for entry in answer.get("Failed", ())]
