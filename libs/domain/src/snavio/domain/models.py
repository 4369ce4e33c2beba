"""What the registry holds: routes, grants, keys, bans and quotas, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from snavio.wire.names import COMMAND_PATTERN, NAME_PATTERN

Name = Annotated[str, msgspec.Meta(pattern=f"^{NAME_PATTERN}\\Z")]
Command = Annotated[str, msgspec.Meta(pattern=f"^{COMMAND_PATTERN}\\Z")]
Source = Annotated[str, msgspec.Meta(pattern=f"^_?{NAME_PATTERN}/{NAME_PATTERN}\\Z")]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Sensitivity(StrEnum):
    """How long a remembered grant may be relied on."""

    CRITICAL = "critical"
    MODERATE = "moderate"
    LOW = "low"


class DedupeMode(StrEnum):
    """Whether a command may be delivered more than once."""

    NONE = "none"
    STRICT = "strict"


class DispatchMode(StrEnum):
    """Whether fast may deliver at all."""

    ADAPTIVE = "adaptive"
    COLD_ONLY = "cold-only"


class RateLimit(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A token bucket: `limit` per `interval_seconds` sustained, at most `burst` at once."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
    interval_seconds: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 1
    burst: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    """`limit` when not given."""
    shadow: bool = False
    """Count and report, never reject."""
    prefetchers: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    """How many workers may prefetch a lease in the same second; the platform's figure when not given."""

    @property
    def capacity(self) -> int:
        """The burst in force."""
        return self.limit if self.burst is None else self.burst

    @property
    def per_second(self) -> float:
        """The sustained rate."""
        return self.limit / self.interval_seconds


class FairnessPolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a source is off the warm path of a (target, command): it dominates, and others are there to be hurt."""

    dominant_share: Share = 0.8
    meaningful_share: Share = 0.1
    min_competitors: Positive = 3
    """So many competing sources are contention, however little each sends."""
    min_dispatches: Positive = 20
    """Fewer than this in a window prove nothing."""
    window_seconds: Seconds = 30.0
    ban_seconds: Seconds = 30.0
    enabled: bool = True


class Route(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where a command for a target goes and under which rules."""

    target: Name
    command: Command
    tenant: Name
    """Who owns the target."""
    queue_arn: str
    dlq_arn: str | None = None
    version: int = 1
    dedupe_mode: DedupeMode = DedupeMode.NONE
    expected_drain_seconds: Positive = 300
    sensitivity: Sensitivity = Sensitivity.MODERATE
    rate_limit: RateLimit | None = None
    fairness: FairnessPolicy = FairnessPolicy()
    schema: dict[str, Any] | bool | None = None
    """JSON Schema of the payload."""
    expires_at: float | None = None
    """When an ephemeral route ends."""
    max_message_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1_048_576)] = 1_048_576
    """What the target's queue accepts."""


class Grant(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """That a source may send a command to a target. Without a profile of its own, the route's applies."""

    source: Source
    target: Name
    command: Command
    sensitivity: Sensitivity | None = None
    expires_at: float | None = None


class Key(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One version of a source's HMAC secret, sealed."""

    source: Source
    version_id: str
    sealed: bytes
    created_at: float
    not_after: float | None = None
    """When it stops being accepted: set once a newer version exists."""
    last_poll_at: float | None = None
    """When the producer last fetched its configuration, where known."""


class BanMode(StrEnum):
    """What a ban shuts."""

    WARM = "warm"
    """The warm path, for a time: repeated dominance."""
    COLD_ONLY = "cold-only"
    """The warm path, by an operator's decision."""
    OUTRIGHT = "outright"
    """Everything: shield refuses the source."""

    @property
    def strictness(self) -> int:
        """The higher, the more it shuts."""
        return _STRICTNESS[self]


_STRICTNESS = {BanMode.WARM: 0, BanMode.COLD_ONLY: 1, BanMode.OUTRIGHT: 2}


class Ban(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A source shut out everywhere, for one (target, command) or for all."""

    source: Source
    mode: BanMode
    target: Name | None = None
    command: Command | None = None
    until: float | None = None
    """Open-ended when not given."""
    reason: str = ""


class Quota(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A limit on one source for one (target, command), looked at only when the source is off the warm path."""

    source: Source
    target: Name
    command: Command
    rate_limit: RateLimit


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Platform settings that apply at once, without a restart."""

    dispatch_mode: DispatchMode | None = None
    """The configured mode when not given."""
