"""The settings of the outbox worker."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from snavio.outbox.addresses import Network, networks
from snavio.outbox.alert_sender import SenderSettings
from snavio.outbox.intake import IntakeSettings
from snavio.outbox.lanes import LaneSettings
from snavio.outbox.sweeper import SweepSettings
from snavio.runtime.common_config import CommonConfig, Seconds
from snavio.telemetry.bursts import BurstSettings
from snavio.telemetry.deliveries import DeliverySettings


class OutboxConfig(CommonConfig, frozen=True, kw_only=True):
    """How telemetry is carried, and how alerts are sent."""

    linger_seconds: Annotated[
        float, Meta(gt=0, le=1, description="How long an event may wait for others of its tenant")
    ] = 1.0
    rows_per_tenant: Annotated[
        int, Meta(ge=10, description="Events of one tenant in hand; more are left for the sweeper")
    ] = 2_000
    rows_in_hand: Annotated[
        int, Meta(ge=10, description="Events of all tenants in hand before reading pauses")
    ] = 20_000
    lease_seconds: Annotated[
        Seconds, Meta(description="How long a silent worker keeps its shards and other leases")
    ] = 15.0
    rebalance_seconds: Annotated[Seconds, Meta(description="How often shards are shared out anew")] = 3.0
    checkpoint_seconds: Annotated[
        Seconds, Meta(description="How often leases are renewed and checkpoints kept")
    ] = 1.0
    poll_seconds: Annotated[
        Seconds, Meta(description="Pause after reading a shard to its tip; AWS allows five reads a second")
    ] = 0.25
    sweep_seconds: Annotated[Seconds, Meta(description="Pause between two sweeps")] = 15.0
    missed_after_seconds: Annotated[
        Seconds, Meta(description="Age from which an event the stream has passed is swept")
    ] = 60.0
    patience_seconds: Annotated[
        Seconds, Meta(description="Age from which an event is swept though the stream is stuck")
    ] = 900.0
    retention_seconds: Annotated[
        int, Meta(ge=3600, description="How long the worker's own events are kept while undelivered")
    ] = 14 * 24 * 3600
    report_seconds: Annotated[
        Seconds, Meta(description="Least time between two reports of the same delivery failure")
    ] = 900.0

    email_from: Annotated[
        str | None, Meta(description="Address alerts are mailed from; without one no mail is sent")
    ] = None
    webhook_allow: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks that are not public and webhooks may reach all the same, such as 10.0.0.0/8"
        ),
    ] = ()
    webhook_seconds: Annotated[Seconds, Meta(description="How long a webhook may take to answer")] = 10.0
    alert_gather_seconds: Annotated[
        Seconds, Meta(description="How long a first alert waits for others of its kind")
    ] = 5.0
    alert_window_seconds: Annotated[
        Seconds, Meta(description="How often a burst that goes on is told again")
    ] = 300.0
    alert_attempts: Annotated[
        int, Meta(ge=1, le=20, description="Attempts to deliver an alert to a channel")
    ] = 6
    alert_backoff_seconds: Annotated[Seconds, Meta(description="Pause after the first failed attempt")] = 5.0
    watch_seconds: Annotated[Seconds, Meta(description="How often telemetry queues are looked at")] = 300.0

    def __post_init__(self) -> None:
        """Refuse networks that are none, at start rather than at the first webhook."""
        try:
            networks(self.webhook_allow)
        except ValueError as error:
            raise ValueError(f"SNAVIO_OUTBOX_WEBHOOK_ALLOW: {error}") from error

    @property
    def allowed_networks(self) -> tuple[Network, ...]:
        """Where webhooks may lead besides public addresses."""
        return networks(self.webhook_allow)

    @property
    def lanes(self) -> LaneSettings:
        """How rows are published."""
        return LaneSettings(linger_seconds=self.linger_seconds, rows_per_tenant=self.rows_per_tenant)

    @property
    def intake(self) -> IntakeSettings:
        """How shards are read."""
        return IntakeSettings(
            lease_seconds=self.lease_seconds,
            rebalance_seconds=self.rebalance_seconds,
            checkpoint_seconds=self.checkpoint_seconds,
            poll_seconds=self.poll_seconds,
            rows_in_hand=self.rows_in_hand,
        )

    @property
    def sweep(self) -> SweepSettings:
        """What is swept."""
        return SweepSettings(
            missed_after_seconds=self.missed_after_seconds, patience_seconds=self.patience_seconds
        )

    @property
    def alerts(self) -> SenderSettings:
        """How alerts are sent."""
        return SenderSettings(
            bursts=BurstSettings(
                gather_seconds=self.alert_gather_seconds, window_seconds=self.alert_window_seconds
            ),
            deliveries=DeliverySettings(
                attempts=self.alert_attempts, base_seconds=self.alert_backoff_seconds
            ),
        )
