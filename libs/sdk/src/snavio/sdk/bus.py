"""The bus as the producer sees it, and EventBridge behind it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from aiobotocore.session import AioSession
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
)

from snavio.sdk.aws_session import AwsOptions, refusal
from snavio.sdk.batching import Accepted, Failed, PutResult, entry_failed
from snavio.sdk.credentials import Assumed, EmitCredentials, FixedResolver, session_name
from snavio.sdk.tenant_config import TenantConfig
from snavio.wire.commands import COMMAND_SENT

_EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"}
)
_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ResourceNotFoundException",
        "ValidationException",
        "RequestEntityTooLarge",
        "RequestEntityTooLargeException",
        "413",
    }
)
_NEVER_SENT = (EndpointConnectionError, ConnectTimeoutError)
_HOPELESS = (NoCredentialsError, PartialCredentialsError, ParamValidationError, NoRegionError)


class Bus(Protocol):
    """Takes signed commands."""

    async def put(self, details: Sequence[str]) -> list[PutResult]:
        """One request; an answer for each, in order. Never raises for what the bus or the network did."""
        ...


class EventBridgeBus:
    """PutEvents with the tenant's emit role."""

    def __init__(
        self, client: Any, *, bus: str, source: str, credentials: EmitCredentials | None = None
    ) -> None:
        self._put = client.put_events
        self._credentials = credentials
        self._fixed = {"EventBusName": bus, "Source": source, "DetailType": COMMAND_SENT}

    async def put(self, details: Sequence[str]) -> list[PutResult]:
        """One PutEvents request."""
        entries = [{**self._fixed, "Detail": detail} for detail in details]
        used = None
        try:
            if self._credentials is not None:
                used = await self._credentials.key_in_use()
            answer = await self._put(Entries=entries)
        except ClientError as error:
            return [self._whole_request(error, used)] * len(entries)
        except (TimeoutError, BotoCoreError, OSError) as error:
            hopeless = isinstance(error, _HOPELESS)
            uncertain = not hopeless and not isinstance(error, _NEVER_SENT)
            return [Failed(type(error).__name__, str(error), permanent=hopeless, uncertain=uncertain)] * len(
                entries
            )
        if not answer.get("FailedEntryCount"):
            return [Accepted(entry["EventId"]) for entry in answer["Entries"]]
        return [
            Accepted(entry["EventId"])
            if "EventId" in entry
            else entry_failed(entry.get("ErrorCode", ""), entry.get("ErrorMessage", ""))
            for entry in answer["Entries"]
        ]

    def _whole_request(self, error: ClientError, used: str | None) -> Failed:
        said = refusal(error)
        if said.code in _EXPIRED and self._credentials is not None:
            self._credentials.forget(used)
        return Failed(said.code, said.message, permanent=said.code in _REFUSED)


@asynccontextmanager
async def open_bus(
    config: TenantConfig, source: str, options: AwsOptions, now: Callable[[], float], *, connections: int
) -> AsyncGenerator[Bus]:
    """The tenant's bus, reached with the emit role where the configuration names one."""
    async with AsyncExitStack() as stack:
        credentials = None
        session = None
        if config.emit_role_arn is not None:
            sts = await options.client(stack, "sts")
            credentials = EmitCredentials(_assuming(sts, config.emit_role_arn, options, now), now)
            session = AioSession()
            session.register_component("credential_provider", FixedResolver(credentials))  # pyright: ignore[reportUnknownMemberType]
        client = await options.client(
            stack,
            "events",
            session=session,
            # The sender retries by itself, entry by entry and with a fresh signature; what it sends it has checked.
            retries={"total_max_attempts": 1},
            parameter_validation=False,
            max_pool_connections=connections,
            connect_timeout=5,
            read_timeout=15,
        )
        yield EventBridgeBus(client, bus=config.bus, source=source, credentials=credentials)


def _assuming(sts: Any, role_arn: str, options: AwsOptions, now: Callable[[], float]) -> Callable[[], Any]:
    name = options.role_session_name

    async def assume() -> Assumed:
        nonlocal name
        if name is None:
            name = session_name((await sts.get_caller_identity())["Arn"])
        asked_at = now()
        answer = await sts.assume_role(
            RoleArn=role_arn, RoleSessionName=name, DurationSeconds=options.session_seconds
        )
        given = answer["Credentials"]
        return Assumed(
            given["AccessKeyId"],
            ReadOnlyCredentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], None),
            asked_at,
            # By the length asked for, not by the end told: the sender's clock may be off.
            asked_at + options.session_seconds,
        )

    return assume
