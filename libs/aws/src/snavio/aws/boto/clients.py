"""aiobotocore clients, opened when first asked for and closed together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import anyio
from aiobotocore.session import AioSession
from botocore.exceptions import BotoCoreError

from snavio.aws.boto.config import port_config, raw_config
from snavio.aws.errors import Permanent

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from aiobotocore.config import AioConfig


class Clients:
    """One client a service behind the ports, and one a service handed out raw."""

    def __init__(
        self,
        closing: AsyncExitStack,
        *,
        session: AioSession | None,
        region: str | None,
        endpoint_url: str | None,
    ) -> None:
        self._closing = closing
        # aiobotocore has no types: from here on its session and clients are Any.
        self._session = cast("Any", session or AioSession())
        # botocore reads AWS_DEFAULT_REGION only; containers on AWS are given AWS_REGION.
        self._region = region or os.environ.get("AWS_REGION")
        self._endpoint_url = endpoint_url
        self._custom_endpoint = bool(
            endpoint_url or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        )
        self._open: dict[tuple[str, bool], Any] = {}
        self._opening = anyio.Lock()

    async def port(self, service: str) -> Any:
        """The client tuned for a port, without retries of its own."""
        return await self._client(service, raw=False)

    async def raw(self, service: str) -> Any:
        """A client of any service, with botocore's usual care."""
        return await self._client(service, raw=True)

    async def credentials(self) -> Any:
        """What the standard chain finds; refreshes itself when asked for frozen credentials."""
        return await self._session.get_credentials()

    async def _client(self, service: str, *, raw: bool) -> Any:
        found = self._open.get((service, raw))
        if found is not None:
            return found
        async with self._opening:
            found = self._open.get((service, raw))
            if found is None:
                custom = self._custom_endpoint
                config = (
                    raw_config(custom_endpoint=custom)
                    if raw
                    else port_config(service, custom_endpoint=custom)
                )
                found = await self._create(service, config)
                self._open[service, raw] = found
            return found

    async def _create(self, service: str, config: AioConfig) -> Any:
        try:
            creating = self._session.create_client(
                service, region_name=self._region, endpoint_url=self._endpoint_url, config=config
            )
            return await self._closing.enter_async_context(creating)
        except (BotoCoreError, ValueError) as error:
            raise Permanent(f"No {service} client: {error}", code=type(error).__name__) from error
