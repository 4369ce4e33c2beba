"""aiobotocore clients, opened when first asked for and closed together."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Any, cast

import anyio
from aiobotocore.session import AioSession
from botocore import httpsession, utils
from botocore.exceptions import BotoCoreError

from snavio.aws.boto.config import port_config, raw_config
from snavio.aws.boto.faults import translated
from snavio.aws.errors import Permanent, Refused

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from aiobotocore.config import AioConfig

    from snavio.aws.lean.sigv4 import Keys


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
        self._credentials: Any = None
        self._tls: ssl.SSLContext | None = None

    async def port(self, service: str) -> Any:
        """The client tuned for a port, without retries of its own."""
        return await self._client(service, raw=False)

    async def raw(self, service: str) -> Any:
        """A client of any service, with botocore's usual care."""
        return await self._client(service, raw=True)

    async def keys(self) -> Keys:
        """The credentials of the standard chain as they are now, refreshed when they near their end."""
        if self._credentials is None:
            with translated("credentials"):
                self._credentials = await self._session.get_credentials()
            if self._credentials is None:
                raise Permanent("credentials: Unable to locate credentials", code="NoCredentials")
        try:
            return await self._credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise Refused(f"credentials: {error}") from error

    def tls(self) -> ssl.SSLContext:
        """What AWS's certificates are checked by: the bundle configured, or the one botocore brings."""
        if self._tls is not None:
            return self._tls
        bundle = self._session.get_config_variable("ca_bundle") or cast("Any", httpsession).get_cert_path(
            True
        )
        context = ssl.create_default_context(cafile=bundle)
        context.set_alpn_protocols(["http/1.1"])
        self._tls = context
        return context

    def has_proxy(self, url: str) -> bool:
        """Whether the environment asks for a proxy on the way there."""
        return bool(cast("Any", utils).get_environ_proxies(url))

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
