"""The settings of slow."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from snavio.dispatch.config import DispatchConfig
from snavio.dispatch.delivery import DeliveryPolicy
from snavio.domain.cold import RetryPolicy
from snavio.domain.dedupe import DedupePolicy
from snavio.domain.fairness import GlobalBanPolicy


class SlowConfig(DispatchConfig, frozen=True, kw_only=True):
    """How commands are delivered with authority."""

    dedupe_seconds: Annotated[
        float, Meta(gt=0, description="How long ids of strict commands are remembered")
    ] = 300.0
    claim_seconds: Annotated[
        float, Meta(gt=0, description="How long a claim on an id is respected before it counts as abandoned")
    ] = 30.0
    delivery_attempts: Annotated[int, Meta(ge=1, le=15, description="How often a delivery is tried")] = 6
    delivery_backoff_seconds: Annotated[
        float, Meta(gt=0, description="Wait after the first failed delivery")
    ] = 1.0
    send_timeout_seconds: Annotated[float, Meta(gt=0, description="Time limit for one send to a target")] = (
        10.0
    )
    global_ban_after: Annotated[
        int, Meta(ge=1, description="Warm-path bans that become a ban everywhere")
    ] = 3
    global_ban_within_seconds: Annotated[float, Meta(gt=0, description="Period in which they must fall")] = (
        600.0
    )
    global_ban_seconds: Annotated[float, Meta(gt=0, description="How long a ban everywhere lasts")] = 600.0

    @property
    def dedupe_policy(self) -> DedupePolicy:
        """How long ids are remembered and claims are respected."""
        return DedupePolicy(remember_seconds=self.dedupe_seconds, claim_seconds=self.claim_seconds)

    @property
    def retry_policy(self) -> RetryPolicy:
        """How often and how patiently a delivery is tried."""
        return RetryPolicy(attempts=self.delivery_attempts, base_seconds=self.delivery_backoff_seconds)

    @property
    def delivery_policy(self) -> DeliveryPolicy:
        """How a destination is treated."""
        return DeliveryPolicy(timeout_seconds=self.send_timeout_seconds)

    @property
    def ban_policy(self) -> GlobalBanPolicy:
        """When repeated bans become one everywhere."""
        return GlobalBanPolicy(
            bans=self.global_ban_after,
            within_seconds=self.global_ban_within_seconds,
            ban_seconds=self.global_ban_seconds,
        )
