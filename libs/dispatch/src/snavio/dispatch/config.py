"""The settings that shield, fast and slow share. They are the platform's, so each variable serves all three."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from snavio.domain.freshness import Ttl, TtlPolicy
from snavio.domain.models import DispatchMode
from snavio.registry.snapshots import SnapshotPolicy
from snavio.runtime.common_config import CommonConfig
from snavio.wire.names import Names
from snavio.wire.outbox import RETENTION_SECONDS


def _seconds(variable: str, description: str) -> Meta:
    return Meta(gt=0, description=description, extra={"env": [f"SNAVIO_REGISTRY_{variable}"]})


class DispatchConfig(CommonConfig, frozen=True, kw_only=True):
    """How long what is remembered may be relied on, and how dispatching is done."""

    refresh_seconds: Annotated[
        float, _seconds("REFRESH_SECONDS", "Time between two reads of the changelog")
    ] = 1.0
    load_segments: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Parallel scans of a cold load",
            extra={"env": ["SNAVIO_REGISTRY_LOAD_SEGMENTS"]},
        ),
    ] = 4
    snapshots: Annotated[
        bool,
        Meta(
            description="Load the registry from its snapshot at cold start, where one is fit",
            extra={"env": ["SNAVIO_REGISTRY_SNAPSHOTS"]},
        ),
    ] = True
    snapshot_max_age_seconds: Annotated[
        float, _seconds("SNAPSHOT_MAX_AGE_SECONDS", "Age from which a snapshot is refused")
    ] = 300.0
    snapshot_max_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            description="Size from which a part of a snapshot is neither published nor loaded",
            extra={"env": ["SNAVIO_REGISTRY_SNAPSHOT_MAX_BYTES"]},
        ),
    ] = 64 * 1024 * 1024
    ttl_jitter: Annotated[
        float,
        Meta(
            ge=0,
            le=0.5,
            description="Part of each age by which it is shortened at random",
            extra={"env": ["SNAVIO_REGISTRY_TTL_JITTER"]},
        ),
    ] = 0.1
    routing_fresh_seconds: Annotated[
        float, _seconds("ROUTING_FRESH_SECONDS", "Age at which routes turn stale")
    ] = 300.0
    routing_stale_seconds: Annotated[
        float, _seconds("ROUTING_STALE_SECONDS", "Age at which routes expire")
    ] = 600.0
    keys_fresh_seconds: Annotated[float, _seconds("KEYS_FRESH_SECONDS", "Age at which keys turn stale")] = (
        60.0
    )
    keys_stale_seconds: Annotated[float, _seconds("KEYS_STALE_SECONDS", "Age at which keys expire")] = 180.0
    critical_fresh_seconds: Annotated[
        float, _seconds("CRITICAL_FRESH_SECONDS", "Age at which critical grants turn stale")
    ] = 2.0
    critical_stale_seconds: Annotated[
        float, _seconds("CRITICAL_STALE_SECONDS", "Age at which critical grants expire")
    ] = 4.0
    moderate_fresh_seconds: Annotated[
        float, _seconds("MODERATE_FRESH_SECONDS", "Age at which moderate grants turn stale")
    ] = 10.0
    moderate_stale_seconds: Annotated[
        float, _seconds("MODERATE_STALE_SECONDS", "Age at which moderate grants expire")
    ] = 20.0
    low_fresh_seconds: Annotated[
        float, _seconds("LOW_FRESH_SECONDS", "Age at which low grants turn stale")
    ] = 30.0
    low_stale_seconds: Annotated[float, _seconds("LOW_STALE_SECONDS", "Age at which low grants expire")] = (
        90.0
    )
    dispatch_mode: Annotated[
        DispatchMode,
        Meta(
            description="adaptive, or cold-only to send everything through slow; the registry's setting wins",
            extra={"env": ["SNAVIO_DISPATCH_MODE"]},
        ),
    ] = DispatchMode.ADAPTIVE
    clock_tolerance_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            description="How far workers' clocks may be apart without a limit being exceeded",
            extra={"env": ["SNAVIO_DISPATCH_CLOCK_TOLERANCE_SECONDS"]},
        ),
    ] = 0.0
    outbox_retention_seconds: Annotated[
        int,
        Meta(
            ge=3600,
            description="How long undelivered telemetry is kept",
            extra={"env": ["SNAVIO_DISPATCH_OUTBOX_RETENTION_SECONDS"]},
        ),
    ] = RETENTION_SECONDS

    def __post_init__(self) -> None:
        """Each age at which something expires must come after the one at which it turns stale."""
        for cache in ("routing", "keys", "critical", "moderate", "low"):
            if getattr(self, f"{cache}_fresh_seconds") > getattr(self, f"{cache}_stale_seconds"):
                upper = cache.upper()
                raise ValueError(
                    f"SNAVIO_REGISTRY_{upper}_FRESH_SECONDS must not exceed SNAVIO_REGISTRY_{upper}_STALE_SECONDS"
                )

    @property
    def names(self) -> Names:
        """The platform's resources."""
        return Names(prefix=self.prefix, region=self.region, account=self.account)

    @property
    def snapshot_policy(self) -> SnapshotPolicy:
        """Which snapshots are loaded."""
        return SnapshotPolicy(
            max_age_seconds=self.snapshot_max_age_seconds, max_bytes=self.snapshot_max_bytes
        )

    @property
    def ttls(self) -> TtlPolicy:
        """The ages of every kind of cache."""
        return TtlPolicy(
            routing=Ttl(self.routing_fresh_seconds, self.routing_stale_seconds),
            keys=Ttl(self.keys_fresh_seconds, self.keys_stale_seconds),
            critical=Ttl(self.critical_fresh_seconds, self.critical_stale_seconds),
            moderate=Ttl(self.moderate_fresh_seconds, self.moderate_stale_seconds),
            low=Ttl(self.low_fresh_seconds, self.low_stale_seconds),
        )
