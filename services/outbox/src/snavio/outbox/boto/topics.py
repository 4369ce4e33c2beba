"""The `Topics` port on SNS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snavio.aws.boto.faults import translated
from snavio.aws.errors import Permanent
from snavio.aws.faults import entry_fault
from snavio.outbox.batching import MAX_BYTES, published_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from snavio.aws.values import Fault
    from snavio.wire.names import Names
    from snavio.wire.outbox import OutboxRow


class SnsTopics:
    """Publishes to the topic each tenant has by name."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], names: Names) -> None:
        self._client = client
        self._names = names

    async def publish(self, tenant: str, rows: Sequence[OutboxRow]) -> list[Fault | None]:
        """Publish up to ten rows in one call."""
        sns = await self._client("sns")
        # An emulator may accept what SNS refuses, so the limit is ours to keep.
        answers: list[Fault | None] = [
            Permanent("The event is larger than a topic accepts.", code="TooLarge")
            if published_bytes(row) > MAX_BYTES
            else None
            for row in rows
        ]
        entries = [_entry(index, row) for index, row in enumerate(rows) if answers[index] is None]
        if not entries:
            return answers
        with translated("PublishBatch"):
            answer = await sns.publish_batch(
                TopicArn=self._names.topic_arn(self._names.telemetry(tenant)),
                PublishBatchRequestEntries=entries,
            )
        for failed in answer.get("Failed", []):
            answers[int(failed["Id"])] = entry_fault(
                "PublishBatch",
                str(failed.get("Code", "")),
                str(failed.get("Message", "")),
                sender_fault=bool(failed.get("SenderFault", False)),
            )
        return answers


def _entry(index: int, row: OutboxRow) -> dict[str, Any]:
    attributes = {"event_type": row.event_type, "tenant": row.tenant, "source": row.source}
    return {
        "Id": str(index),
        "Message": row.body,
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value}
            for name, value in attributes.items()
            if value  # SNS refuses an empty attribute
        },
    }
