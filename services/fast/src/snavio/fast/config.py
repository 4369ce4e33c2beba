"""The settings of fast."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from snavio.dispatch.config import DispatchConfig
from snavio.dispatch.delivery import DeliveryPolicy
from snavio.domain.lease import LeasePolicy


class FastConfig(DispatchConfig, frozen=True, kw_only=True):
    """How commands are delivered from warm memory."""

    handler_batch: Annotated[
        int, Meta(ge=1, le=1000, description="Waiting commands handled together, at most, to fill sends")
    ] = 40
    lease_seconds: Annotated[float, Meta(ge=1, le=60, description="The longest a token lease is used")] = 30.0
    lease_horizon_seconds: Annotated[
        float, Meta(gt=0, description="How much demand one lease should cover")
    ] = 2.0
    prefetchers: Annotated[
        int, Meta(ge=1, description="Workers that may prefetch for one (target, command) in the same second")
    ] = 5
    seen_ids: Annotated[int, Meta(ge=0, description="Ids of strict commands remembered by one worker")] = (
        100_000
    )
    seen_seconds: Annotated[
        float, Meta(gt=0, description="How long one worker remembers a strict command")
    ] = 300.0
    send_timeout_seconds: Annotated[float, Meta(gt=0, description="Time limit for one send to a target")] = (
        5.0
    )

    @property
    def lease_policy(self) -> LeasePolicy:
        """How leases are sized and how long they last."""
        return LeasePolicy(
            seconds=self.lease_seconds,
            horizon_seconds=self.lease_horizon_seconds,
            tolerance_seconds=self.clock_tolerance_seconds,
        )

    @property
    def delivery_policy(self) -> DeliveryPolicy:
        """How a destination is treated."""
        return DeliveryPolicy(timeout_seconds=self.send_timeout_seconds)
