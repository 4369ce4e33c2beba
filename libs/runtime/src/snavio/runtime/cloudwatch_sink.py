"""CloudWatch itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from snavio.aws.boto.faults import translated
from snavio.runtime.cloudwatch import Datum, Total

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS = {"1": "Count", "s": "Seconds", "ms": "Milliseconds", "By": "Bytes"}


class CloudWatchSink:
    """Publishes through a raw aiobotocore client of `cloudwatch`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def publish(self, namespace: str, data: Sequence[Datum | Total]) -> None:
        """Publish up to 1000 data in one call."""
        with translated("PutMetricData"):
            await self._client.put_metric_data(
                Namespace=namespace, MetricData=[_written(datum) for datum in data]
            )


def _written(datum: Datum | Total) -> dict[str, Any]:
    written: dict[str, Any] = {
        "MetricName": datum.name,
        "Unit": _UNITS[datum.unit],
        "Timestamp": datetime.fromtimestamp(datum.at, UTC),
        "Dimensions": [{"Name": name, "Value": value} for name, value in datum.dimensions],
    }
    if isinstance(datum, Datum):
        return written | {"Values": list(datum.values), "Counts": [float(count) for count in datum.counts]}
    statistics = {
        "SampleCount": float(datum.count),
        "Sum": datum.total,
        "Minimum": datum.least,
        "Maximum": datum.most,
    }
    return written | {"StatisticValues": statistics}
