"""How the SDK reaches AWS: like every AWS tool, unless told otherwise."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore.exceptions import ClientError


class AwsAnswer(msgspec.Struct, frozen=True):
    """What AWS said when it refused a call."""

    code: str
    message: str
    item: dict[str, Any]
    """With a failed condition: the item that stood against it."""


def refusal(error: ClientError) -> AwsAnswer:
    """What a botocore error says, read in one place."""
    response: Any = error.response  # pyright: ignore[reportUnknownMemberType] - botocore has no types
    said = response.get("Error", {})
    return AwsAnswer(str(said.get("Code", "Unknown")), str(said.get("Message", "")), response.get("Item", {}))


class AwsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where AWS is and who calls. What is not given is found in the environment, profile, container or instance."""

    region: str | None = None
    endpoint_url: str | None = None
    session: AioSession | None = None
    """A session with the sender's (or the target's) own credentials."""
    role_session_name: str | None = None
    """The name to assume the emit role under; the caller's own role name when not given."""
    session_seconds: int = 3600
    """How long assumed credentials last. Between roles AWS allows an hour at most."""

    async def client(
        self, stack: AsyncExitStack, service: str, *, session: AioSession | None = None, **config: Any
    ) -> Any:
        """A client that lives as long as the stack."""
        chosen: Any = session or self.session or AioSession()
        return await stack.enter_async_context(
            chosen.create_client(
                service,
                region_name=self.region,
                endpoint_url=self.endpoint_url,
                # A fixed name: botocore composes its own anew for every request, at a tenth of the request's cost.
                config=AioConfig(user_agent="snavio-sdk", **config),
            )
        )
