"""The settings of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from snavio.control.keys import DAY, KeyPolicy
from snavio.runtime.common_config import CommonConfig, Seconds
from snavio.wire.names import Names


class GatewayConfig(CommonConfig, frozen=True, kw_only=True):
    """Where the gateway listens, whose tokens it believes and how it treats keys."""

    host: Annotated[str, Meta(min_length=1, description="Address the API listens on")] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="Port of the API; 0 takes any free one and logs it")
    ] = 8080
    jwt_secret_file: Annotated[
        str | None, Meta(description="File with the secret of the gateway's own tokens (HS256)")
    ] = None
    jwks_url: Annotated[
        str | None, Meta(description="Where an identity provider publishes the keys of its tokens")
    ] = None
    jwt_issuer: Annotated[
        str | None, Meta(description="The issuer an identity provider's tokens must name")
    ] = None
    jwt_audience: Annotated[
        str | None, Meta(description="The audience an identity provider's tokens must name")
    ] = None
    token_days: Annotated[float, Meta(gt=0, le=3650, description="How long a tenant's token is valid")] = 90.0

    max_body_bytes: Annotated[
        int, Meta(ge=1024, le=10_485_760, description="Largest request body accepted")
    ] = 262_144
    requests_per_minute: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Requests a caller may make a minute, sustained")
    ] = 600
    request_burst: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Requests a caller may make at once")
    ] = 200

    key_rotation_days: Annotated[
        float, Meta(gt=0, le=3650, description="Age at which a producer's key is rotated")
    ] = 30.0
    key_overlap_days: Annotated[
        float, Meta(gt=0, le=3650, description="How long the previous key is still accepted")
    ] = 7.0
    poll_interval_seconds: Annotated[
        Seconds, Meta(description="How often producers are asked to fetch their configuration")
    ] = 12 * 3600.0
    replay_window_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="The replay window producers are told of: shield's",
            extra={"env": ["SNAVIO_SHIELD_REPLAY_WINDOW_SECONDS"]},
        ),
    ] = 60.0
    housekeeping_seconds: Annotated[
        Seconds,
        Meta(description="Time between two rounds of finishing registrations that stopped half-way"),
    ] = 60.0

    def __post_init__(self) -> None:
        if self.jwt_secret_file is None and self.jwks_url is None:
            raise ValueError(
                "SNAVIO_GATEWAY_JWT_SECRET_FILE or SNAVIO_GATEWAY_JWKS_URL: one is required, to know callers by"
            )

    @property
    def names(self) -> Names:
        """The resources of this installation."""
        return Names(prefix=self.prefix, region=self.region, account=self.account)

    @property
    def secret_path(self) -> Path | None:
        """Where the secret of the gateway's own tokens is."""
        return Path(self.jwt_secret_file) if self.jwt_secret_file else None

    @property
    def key_policy(self) -> KeyPolicy:
        """The figures of key rotation."""
        return KeyPolicy(
            rotate_seconds=self.key_rotation_days * DAY, overlap_seconds=self.key_overlap_days * DAY
        )
