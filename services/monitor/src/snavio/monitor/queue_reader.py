"""Looks at target queues: depths from SQS, ages from CloudWatch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import SnavioError
from snavio.aws.ports import Queues
from snavio.monitor.queue_health import Reading, Unreachable
from snavio.wire.names import Names

_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_AT_ONCE = 16
_PERIOD_SECONDS = 60
_LATE_SECONDS = 300
"""CloudWatch tells of SQS a few minutes late."""
_QUERIES_A_CALL = 500


class QueueReader:
    """Reads many queues at once. `client` opens raw aiobotocore clients by service."""

    def __init__(
        self, client: Callable[[str], Awaitable[Any]], queues: Queues, names: Names, *, with_ages: bool
    ) -> None:
        self._client = client
        self._queues = queues
        self._names = names
        self._with_ages = with_ages

    async def read(self, arns: Sequence[str], now: float) -> dict[str, Reading | Unreachable]:
        """What each queue shows, by its ARN.

        Ages are asked for where there is something to be old: CloudWatch charges for each metric it is asked for, and of
        well-read queues most are empty at any look.
        """
        found: dict[str, Reading | Unreachable] = {}
        limit = anyio.CapacityLimiter(_AT_ONCE)

        async def look(arn: str) -> None:
            async with limit:
                found[arn] = await self._look(arn)

        async with anyio.create_task_group() as group:
            for arn in arns:
                group.start_soon(look, arn)
        if self._with_ages:
            held = {arn: one for arn, one in found.items() if isinstance(one, Reading) and one.held}
            for arn, oldest in (await self._ages(sorted(held), now)).items():
                found[arn] = msgspec.structs.replace(held[arn], oldest_seconds=oldest)
        return found

    async def _look(self, arn: str) -> Reading | Unreachable:
        try:
            url = self._queues.url_of(arn)
            sqs = await self._client("sqs")
            with translated("GetQueueAttributes"):
                answer = await sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_DEPTHS))
        except SnavioError as error:
            return Unreachable(str(error))
        waiting, in_flight, delayed = (int(answer.get("Attributes", {}).get(name, 0)) for name in _DEPTHS)
        return Reading(waiting=waiting, in_flight=in_flight, delayed=delayed)

    async def _ages(self, arns: Sequence[str], now: float) -> dict[str, float]:
        """The newest age CloudWatch has of each queue; queues of other accounts and regions are not in it."""
        ours = [arn for arn in arns if arn.startswith(self._names.queue_arn(""))]
        ages: dict[str, float] = {}
        for start in range(0, len(ours), _QUERIES_A_CALL):
            some = ours[start : start + _QUERIES_A_CALL]
            try:
                ages |= await self._some_ages(some, now)
            except SnavioError:
                # Depths alone still tell of a queue nobody reads.
                return ages
        return ages

    async def _some_ages(self, arns: Sequence[str], now: float) -> dict[str, float]:
        cloudwatch = await self._client("cloudwatch")
        queries = [
            {
                "Id": f"age{index}",
                "ReturnData": True,
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": "ApproximateAgeOfOldestMessage",
                        "Dimensions": [{"Name": "QueueName", "Value": arn.rpartition(":")[2]}],
                    },
                    "Period": _PERIOD_SECONDS,
                    "Stat": "Maximum",
                },
            }
            for index, arn in enumerate(arns)
        ]
        with translated("GetMetricData"):
            answer = await cloudwatch.get_metric_data(
                MetricDataQueries=queries,
                StartTime=datetime.fromtimestamp(now - _LATE_SECONDS, UTC),
                EndTime=datetime.fromtimestamp(now, UTC),
                ScanBy="TimestampDescending",
            )
        return {
            arns[int(result["Id"].removeprefix("age"))]: float(result["Values"][0])
            for result in answer.get("MetricDataResults", [])
            if result.get("Values")
        }
