"""The settings every worker has. A service's own Struct inherits from this one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Seconds = Annotated[float, Meta(gt=0)]
"""A duration that cannot be zero."""


class CommonConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Read by `snavio.runtime.config.load`, from `SNAVIO_<FIELD>` unless a field names other variables."""

    prefix: Annotated[
        str,
        Meta(pattern="^[a-z][a-z0-9-]{0,30}$", description="First part of the name of every AWS resource"),
    ] = "snavio"
    stage: Annotated[
        str, Meta(pattern="^[a-z][a-z0-9-]{0,30}$", description="Deployment stage, shown in logs and traces")
    ] = "dev"
    region: Annotated[
        str, Meta(min_length=1, description="AWS region", extra={"env": ["AWS_REGION", "AWS_DEFAULT_REGION"]})
    ] = "us-east-1"
    endpoint: Annotated[
        str | None, Meta(description="AWS endpoint, when not AWS itself", extra={"env": ["AWS_ENDPOINT_URL"]})
    ] = None
    account: Annotated[str, Meta(pattern="^[0-9]{12}$", description="AWS account id")] = "000000000000"

    worker_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=100)] | None,
        Meta(description="Name of this process; made up when absent"),
    ] = None
    health_host: Annotated[str, Meta(min_length=1, description="Address the health port listens on")] = (
        "127.0.0.1"
    )
    health_port: Annotated[
        int, Meta(ge=0, le=65535, description="Health port; 0 takes any free one and logs it")
    ] = 0

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least severe log line written")
    ] = "info"
    log_format: Annotated[
        Literal["json", "console"], Meta(description="Log lines for machines or for people")
    ] = "json"
    otlp_endpoint: Annotated[
        str | None,
        Meta(
            description="OTLP/HTTP collector; traces and metrics are off without one",
            extra={"env": ["OTEL_EXPORTER_OTLP_ENDPOINT"]},
        ),
    ] = None
    cloudwatch_metrics: Annotated[
        bool, Meta(description="Publish metrics to CloudWatch, namespace Snavio")
    ] = False
    metrics_interval_seconds: Annotated[
        Seconds, Meta(description="Time between two publications of metrics")
    ] = 60.0

    polls: Annotated[int, Meta(ge=1, le=100, description="Concurrent long polls on a queue")] = 4
    handlers: Annotated[int, Meta(ge=1, le=1000, description="Batches handled at the same time")] = 8
    batches_in_hand: Annotated[
        int,
        Meta(
            ge=1, le=10_000, description="Batches of ten received and not yet settled before receiving pauses"
        ),
    ] = 16
    wait_seconds: Annotated[
        int,
        Meta(
            ge=1,
            le=20,
            description="How long a poll waits for a message, at most a second less than the drain",
        ),
    ] = 10
    visibility_seconds: Annotated[
        int, Meta(ge=2, le=43_200, description="How long a received message is hidden; renewed while in hand")
    ] = 30
    stuck_seconds: Annotated[
        Seconds, Meta(description="A batch in its handler for longer makes the worker not live")
    ] = 300.0
    drain_seconds: Annotated[
        Seconds, Meta(description="Time to finish what is in hand after SIGTERM; the rest is handed back")
    ] = 20.0
    flush_seconds: Annotated[
        Seconds, Meta(description="Time after draining to flush stats, metrics and spans")
    ] = 5.0

    def __repr__(self) -> str:
        """Every field, the secret ones without their values."""
        shown = (
            f"{field.name}={'…' if _is_secret(field.type) else repr(getattr(self, field.name))}"
            for field in msgspec.structs.fields(self)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_secret(annotation: Any) -> bool:
    metas: tuple[object, ...] = getattr(annotation, "__metadata__", ())
    return any(isinstance(meta, Meta) and (meta.extra or {}).get("secret") for meta in metas)
