"""Reads the state of every tenant's telemetry queue: depths from SQS, ages and flows from CloudWatch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from snavio.aws.boto.faults import translated
from snavio.aws.errors import NotFound, SnavioError
from snavio.telemetry.queue_health import QueueReading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from snavio.wire.names import Names

_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "MessageRetentionPeriod",
)
_METRICS = (
    ("oldest", "ApproximateAgeOfOldestMessage", "Maximum"),
    ("sent", "NumberOfMessagesSent", "Sum"),
    ("deleted", "NumberOfMessagesDeleted", "Sum"),
)
# CloudWatch answers 500 queries a call; three a tenant.
_TENANTS_A_CALL = 100
_LEAST_PERIOD = 60


class QueueReader:
    """Looks at queues. `client` opens raw aiobotocore clients by service."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], names: Names) -> None:
        self._client = client
        self._names = names

    async def readings(self, since: float, now: float) -> AsyncIterator[QueueReading]:
        """A reading of each tenant's queues; flows are those since the last reading."""
        tenants = await self._tenants()
        for start in range(0, len(tenants), _TENANTS_A_CALL):
            some = tenants[start : start + _TENANTS_A_CALL]
            flows = await self._flows(some, since, now)
            for tenant in some:
                try:
                    yield await self._reading(tenant, flows)
                except NotFound:
                    continue  # removed since it was listed

    async def _tenants(self) -> list[str]:
        """Whose queues there are: those that have a dead-letter queue beside them, which only a pipeline has."""
        sqs = await self._client("sqs")
        prefix = self._names.telemetry("")
        found: set[str] = set()
        token: dict[str, str] = {}
        while True:
            with translated("ListQueues"):
                answer = await sqs.list_queues(QueueNamePrefix=prefix, MaxResults=1000, **token)
            found |= {url.rpartition("/")[2].removeprefix(prefix) for url in answer.get("QueueUrls", [])}
            if not answer.get("NextToken"):
                return sorted(name for name in found if self._names.dlq(name) in found)
            token = {"NextToken": answer["NextToken"]}

    async def _reading(self, tenant: str, flows: dict[tuple[str, str], float]) -> QueueReading:
        queue = self._names.telemetry(tenant)
        depths = await self._depths(queue)
        dead = await self._depths(self._names.dlq(queue))
        return QueueReading(
            tenant=tenant,
            waiting=depths["ApproximateNumberOfMessages"],
            in_flight=depths["ApproximateNumberOfMessagesNotVisible"],
            delayed=depths["ApproximateNumberOfMessagesDelayed"],
            dead_letters=dead["ApproximateNumberOfMessages"] + dead["ApproximateNumberOfMessagesNotVisible"],
            retention_seconds=depths["MessageRetentionPeriod"],
            oldest_seconds=flows.get((tenant, "oldest")),
            sent=_whole(flows.get((tenant, "sent"))),
            deleted=_whole(flows.get((tenant, "deleted"))),
        )

    async def _depths(self, queue: str) -> dict[str, int]:
        sqs = await self._client("sqs")
        with translated("GetQueueAttributes"):
            url = (await sqs.get_queue_url(QueueName=queue))["QueueUrl"]
            answer = await sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_DEPTHS))
        return {name: int(answer["Attributes"].get(name, 0)) for name in _DEPTHS}

    async def _flows(self, tenants: Sequence[str], since: float, now: float) -> dict[tuple[str, str], float]:
        """What CloudWatch knows; where it knows nothing the answer has nothing."""
        period = max(_LEAST_PERIOD, int((now - since) // _LEAST_PERIOD) * _LEAST_PERIOD)
        cloudwatch = await self._client("cloudwatch")
        queries = [
            {
                "Id": f"{short}{index}",
                "ReturnData": True,
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": metric,
                        "Dimensions": [{"Name": "QueueName", "Value": self._names.telemetry(tenant)}],
                    },
                    "Period": period,
                    "Stat": stat,
                },
            }
            for index, tenant in enumerate(tenants)
            for short, metric, stat in _METRICS
        ]
        try:
            with translated("GetMetricData"):
                answer = await cloudwatch.get_metric_data(
                    MetricDataQueries=queries,
                    StartTime=datetime.fromtimestamp(now - period, UTC),
                    EndTime=datetime.fromtimestamp(now, UTC),
                )
        except SnavioError:
            # Depths alone still tell of a queue nobody reads.
            return {}
        ids = {f"{short}{index}": (t, short) for index, t in enumerate(tenants) for short, _, _ in _METRICS}
        flows: dict[tuple[str, str], float] = {}
        for result in answer["MetricDataResults"]:
            values = [float(value) for value in result.get("Values", [])]
            if values:
                key = ids[result["Id"]]
                flows[key] = max(values) if key[1] == "oldest" else sum(values)
        return flows


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
