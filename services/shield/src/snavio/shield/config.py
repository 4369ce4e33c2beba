"""The settings of shield."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from snavio.dispatch.config import DispatchConfig
from snavio.domain.screening import ScreeningPolicy


class ShieldConfig(DispatchConfig, frozen=True, kw_only=True):
    """How messages are screened."""

    replay_window_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="How far a command's timestamp may be from its arrival")
    ] = 60.0
    skew_near_limit: Annotated[
        float, Meta(gt=0, le=1, description="Part of the replay window from which a skew is reported")
    ] = 0.8
    skew_sample_rate: Annotated[
        float, Meta(ge=0, le=1, description="Part of messages whose skew is sampled")
    ] = 0.01
    key_expiry_warning_seconds: Annotated[
        float, Meta(gt=0, description="How long before a key ends its continued use is alarming")
    ] = 24 * 3600.0
    config_poll_seconds: Annotated[
        float, Meta(gt=0, description="How often producers are expected to fetch their configuration")
    ] = 12 * 3600.0
    key_report_seconds: Annotated[
        float, Meta(gt=0, description="Least time between two reports of the same old key from one worker")
    ] = 60.0

    @property
    def policy(self) -> ScreeningPolicy:
        """The figures of screening."""
        return ScreeningPolicy(
            window_seconds=self.replay_window_seconds,
            near_limit=self.skew_near_limit,
            sample_rate=self.skew_sample_rate,
            expiry_warning_seconds=self.key_expiry_warning_seconds,
            poll_seconds=self.config_poll_seconds,
        )
