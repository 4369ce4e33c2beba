"""The `Queues` port on SQS's JSON protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from snavio.aws import limits
from snavio.aws.arns import parse_queue_arn
from snavio.aws.errors import Permanent, Transient
from snavio.aws.faults import entry_fault
from snavio.aws.ports import MAX_BATCH
from snavio.aws.values import Received

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snavio.aws.call import Call
    from snavio.aws.values import Fault, Outgoing

_SUFFIXES = {
    "aws": "amazonaws.com",
    "aws-us-gov": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
}
_SYSTEM_ATTRIBUTES = ["ApproximateReceiveCount", "SentTimestamp", "MessageGroupId"]


class _Attribute(msgspec.Struct, rename="pascal"):
    string_value: str | None = None


class _Message(msgspec.Struct, rename="pascal"):
    message_id: str
    receipt_handle: str
    body: str
    attributes: dict[str, str] = {}
    message_attributes: dict[str, _Attribute] = {}


class _Messages(msgspec.Struct, rename="pascal"):
    messages: list[_Message] = []


class _Failed(msgspec.Struct, rename="pascal"):
    id: str
    code: str
    sender_fault: bool = False
    message: str = ""


class _Entry(msgspec.Struct, rename="pascal"):
    id: str


class _Batch(msgspec.Struct, rename="pascal"):
    successful: list[_Entry] = []
    failed: list[_Failed] = []


class SqsQueues:
    """`Queues` over any client that carries SQS's operations."""

    def __init__(self, call: Call, endpoint_url: str) -> None:
        self._call = call
        self._endpoint = endpoint_url.rstrip("/")
        self._at_aws = is_aws(endpoint_url)

    def url_of(self, arn: str) -> str:
        """The URL of the queue with this ARN, at this endpoint."""
        partition, region, account, name = parse_queue_arn(arn)
        if self._at_aws:
            return f"https://sqs.{region}.{_SUFFIXES.get(partition, 'amazonaws.com')}/{account}/{name}"
        return f"{self._endpoint}/{account}/{name}"

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = MAX_BATCH,
        wait_seconds: int = 20,
        visibility_seconds: int | None = None,
    ) -> list[Received]:
        """Up to ten messages, waiting for the first."""
        limits.require_receive(max_messages, wait_seconds, visibility_seconds)
        parameters: dict[str, Any] = {
            "QueueUrl": queue,
            "MaxNumberOfMessages": max_messages,
            "WaitTimeSeconds": wait_seconds,
            "MessageSystemAttributeNames": _SYSTEM_ATTRIBUTES,
            "MessageAttributeNames": ["All"],
        }
        if visibility_seconds is not None:
            parameters["VisibilityTimeout"] = visibility_seconds
        answer = await self._call("ReceiveMessage", parameters, _Messages)
        return [_received(message) for message in answer.messages]

    async def send(self, queue: str, messages: Sequence[Outgoing]) -> list[Fault | None]:
        """Send up to ten messages; what SQS would refuse fails alone, what exceeds one batch together is split."""
        limits.require_entries(len(messages))
        outcome: list[Fault | None] = [None] * len(messages)
        if limits.are_plain(messages):
            entries = [_outgoing(index, message) for index, message in enumerate(messages)]
            await self._batch("SendMessageBatch", queue, entries, outcome)
        else:
            await self._send_measured(queue, messages, outcome)
        return outcome

    async def _send_measured(
        self, queue: str, messages: Sequence[Outgoing], outcome: list[Fault | None]
    ) -> None:
        sendable: list[int] = []
        sizes: list[int] = []
        for index, message in enumerate(messages):
            measured = limits.measure(message)
            if isinstance(measured, int):
                sendable.append(index)
                sizes.append(measured)
            else:
                outcome[index] = measured
        runs = list(limits.split_by_bytes(sizes))
        for run in runs:
            indices = [sendable[place] for place in run]
            entries = [_outgoing(index, messages[index]) for index in indices]
            try:
                await self._batch("SendMessageBatch", queue, entries, outcome)
            except (Transient, Permanent) as fault:
                if len(runs) == 1:
                    raise
                for index in indices:
                    outcome[index] = fault

    async def delete(self, queue: str, receipts: Sequence[str]) -> list[Fault | None]:
        """Delete up to ten messages in hand."""
        limits.require_entries(len(receipts))
        outcome: list[Fault | None] = [None] * len(receipts)
        entries = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(receipts)]
        await self._batch("DeleteMessageBatch", queue, entries, outcome)
        return outcome

    async def set_visibility(self, queue: str, timeouts: Sequence[tuple[str, int]]) -> list[Fault | None]:
        """Hide up to ten messages for longer, or hand them back at once."""
        limits.require_entries(len(timeouts))
        outcome: list[Fault | None] = [limits.visibility_fault(seconds) for _, seconds in timeouts]
        entries = [
            {"Id": str(index), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
            for index, (receipt, seconds) in enumerate(timeouts)
            if outcome[index] is None
        ]
        await self._batch("ChangeMessageVisibilityBatch", queue, entries, outcome)
        return outcome

    async def _batch(
        self, operation: str, queue: str, entries: list[dict[str, Any]], outcome: list[Fault | None]
    ) -> None:
        """Make one batch call and note in `outcome`, by entry id, what failed."""
        if not entries:
            return
        answer = await self._call(operation, {"QueueUrl": queue, "Entries": entries}, _Batch)
        if len(answer.successful) == len(entries):
            return
        failed = {entry.id: entry for entry in answer.failed}
        successful = {entry.id for entry in answer.successful}
        for entry in entries:
            identity = entry["Id"]
            failure = failed.get(identity)
            if failure is not None:
                outcome[int(identity)] = entry_fault(
                    operation, failure.code, failure.message, sender_fault=failure.sender_fault
                )
            elif identity not in successful:
                outcome[int(identity)] = Transient(f"{operation}: no answer for entry {identity}.")


def is_aws(endpoint_url: str) -> bool:
    """Whether an endpoint is AWS's own (regional, FIPS, dual-stack or VPC) rather than a custom one."""
    host = urlsplit(endpoint_url).hostname or ""
    return host.endswith((".api.aws", *("." + suffix for suffix in _SUFFIXES.values())))


def _received(message: _Message) -> Received:
    system = message.attributes
    return Received(
        id=message.message_id,
        receipt=message.receipt_handle,
        body=message.body,
        receive_count=int(system.get("ApproximateReceiveCount", "1")),
        sent_at=int(system.get("SentTimestamp", "0")) / 1000,
        group=system.get("MessageGroupId"),
        attributes=_texts(message.message_attributes) if message.message_attributes else {},
    )


def _texts(attributes: dict[str, _Attribute]) -> dict[str, str]:
    return {
        name: attribute.string_value
        for name, attribute in attributes.items()
        if attribute.string_value is not None
    }


def _outgoing(index: int, message: Outgoing) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(index), "MessageBody": message.body}
    if message.group is not None:
        entry["MessageGroupId"] = message.group
    if message.delay_seconds:
        entry["DelaySeconds"] = message.delay_seconds
    if message.attributes:
        entry["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": value} for name, value in message.attributes.items()
        }
    return entry
