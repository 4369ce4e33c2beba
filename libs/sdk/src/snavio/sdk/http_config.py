"""Fetching the tenant's configuration from the gateway."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import aiohttp
import msgspec

from snavio.sdk.errors import ConfigError
from snavio.sdk.tenant_config import TenantConfig, decode_config

PATH = "/api/v1/tenant-config"
Token: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A bearer token, or what gives one each time."""


class ConfigSource(Protocol):
    """Where a tenant's configuration comes from."""

    async def fetch(self) -> TenantConfig:
        """The configuration as it is now. Raises `ConfigError`."""
        ...


class _Problem(msgspec.Struct, frozen=True):
    """The parts of an RFC 9457 problem document a person wants to read."""

    title: str = ""
    detail: str = ""


class HttpConfig:
    """The gateway's `tenant-config`, asked with the tenant's token. `url` is the gateway's, with or without the path."""

    def __init__(self, url: str, token: Token, *, timeout_seconds: float = 10.0) -> None:
        bare = url.rstrip("/")
        self._url = bare if bare.endswith(PATH) else bare + PATH
        self._token = token
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)

    async def fetch(self) -> TenantConfig:
        """Ask the gateway."""
        token = self._token
        if not isinstance(token, str):
            given = token()
            token = await given if inspect.isawaitable(given) else given
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            # Twice a day or so: a session kept open for it would only go stale.
            async with (
                aiohttp.ClientSession(timeout=self._timeout) as session,
                session.get(self._url, headers=headers, allow_redirects=False) as answer,
            ):
                body = await answer.read()
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConfigError(f"{self._url} cannot be reached: {error or type(error).__name__}.") from error
        if status != 200:  # noqa: PLR2004 - the one answer that carries a configuration
            raise ConfigError(f"{self._url} answered {status}{_explained(body)}.")
        return decode_config(body)


def _explained(body: bytes) -> str:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    words = problem.detail or problem.title
    return f": {words.rstrip('.')}" if words else ""
