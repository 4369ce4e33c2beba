"""`TargetQueues` and `Pipelines` on SQS and SNS."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from snavio.aws.boto.faults import translated
from snavio.aws.ports import Queues
from snavio.telemetry.pipeline import provision_pipeline, remove_pipeline
from snavio.wire.names import Names


class SqsTargetQueues:
    """Queues of any account, as far as they let the platform look."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], queues: Queues) -> None:
        self._client = client
        self._queues = queues

    async def attributes(self, arn: str) -> Mapping[str, str]:
        """Every attribute of a queue. Raises `NotFound`, `Permanent` when access is denied, `Transient`."""
        sqs = await self._client("sqs")
        with translated("GetQueueAttributes"):
            answer = await sqs.get_queue_attributes(QueueUrl=self._queues.url_of(arn), AttributeNames=["All"])
        attributes: dict[str, str] = answer.get("Attributes", {})
        return attributes


class TelemetryPipelines:
    """The pipelines of `snavio.telemetry`."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], names: Names) -> None:
        self._client = client
        self._names = names

    async def ensure(self, tenant: str, readers: Sequence[str]) -> None:
        """Make the pipeline, readable by these roles alone."""
        await provision_pipeline(self._client, self._names, tenant, readers=readers)

    async def remove(self, tenant: str) -> None:
        """Remove the pipeline; no error when it is gone."""
        await remove_pipeline(self._client, self._names, tenant)
