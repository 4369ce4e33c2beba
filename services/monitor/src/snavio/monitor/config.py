"""The settings of the monitor."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from snavio.control.keys import DAY, KeyPolicy
from snavio.dispatch.config import DispatchConfig
from snavio.monitor.upkeep import UpkeepPolicy
from snavio.runtime.common_config import Seconds


class MonitorConfig(DispatchConfig, frozen=True, kw_only=True):
    """How often the monitor looks, publishes and tidies, and how fast another takes over."""

    cloudwatch_metrics: Annotated[
        bool, Meta(description="Publish metrics to CloudWatch, namespace Snavio")
    ] = True
    lease_seconds: Annotated[
        Seconds, Meta(description="How long after a leader's last sign of life another takes over")
    ] = 6.0
    watch_seconds: Annotated[Seconds, Meta(description="Time between two looks at every route's queue")] = (
        30.0
    )
    queue_ages: Annotated[
        bool,
        Meta(description="Ask CloudWatch for the age of the oldest message; depths tell it less exactly"),
    ] = True
    snapshot_seconds: Annotated[Seconds, Meta(description="Time between two snapshots of the registry")] = (
        45.0
    )
    snapshot_keep_seconds: Annotated[
        Seconds, Meta(description="How long parts of superseded snapshots are kept for who reads them")
    ] = 900.0
    upkeep_seconds: Annotated[
        Seconds, Meta(description="Time between two rounds of rotating keys and clearing what is over")
    ] = 60.0
    alert_again_seconds: Annotated[
        Seconds, Meta(description="Least time between two reports of the same failure")
    ] = 900.0
    key_rotation_days: Annotated[
        float,
        Meta(
            gt=0,
            le=3650,
            description="Age at which a producer's key is rotated: the gateway's",
            extra={"env": ["SNAVIO_GATEWAY_KEY_ROTATION_DAYS"]},
        ),
    ] = 30.0
    key_overlap_days: Annotated[
        float,
        Meta(
            gt=0,
            le=3650,
            description="How long the previous key is still accepted: the gateway's",
            extra={"env": ["SNAVIO_GATEWAY_KEY_OVERLAP_DAYS"]},
        ),
    ] = 7.0
    key_warning_seconds: Annotated[
        float,
        Meta(
            gt=0,
            description="How long before a key ends its producer is warned: shield's",
            extra={"env": ["SNAVIO_SHIELD_KEY_EXPIRY_WARNING_SECONDS"]},
        ),
    ] = DAY

    @property
    def upkeep_policy(self) -> UpkeepPolicy:
        """The figures of upkeep."""
        return UpkeepPolicy(keys=self.key_policy, warn_seconds=self.key_warning_seconds)

    @property
    def key_policy(self) -> KeyPolicy:
        """The figures of key rotation."""
        return KeyPolicy(
            rotate_seconds=self.key_rotation_days * DAY, overlap_seconds=self.key_overlap_days * DAY
        )
