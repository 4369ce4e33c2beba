"""Posts an alert to a tenant's webhook, trusting neither the URL nor whoever answers.

The name is resolved once, every address it has must be allowed, and the connection goes to one of those addresses and
nowhere else: a name that changes its mind between check and use gains nothing. Redirects are not followed, environment
proxies and cookies not used, and time and bytes are limited.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from snavio.aws.errors import SnavioError
from snavio.outbox.addresses import is_allowed
from snavio.telemetry.alerts import SIGNATURE_HEADER, TIMESTAMP_HEADER, body, signature
from snavio.telemetry.channels import url_problem
from snavio.telemetry.deliveries import GiveUp, Result, Sent, TryAgain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from snavio.outbox.addresses import Network
    from snavio.telemetry.alerts import Alert
    from snavio.telemetry.channels import Webhook

_READ_BYTES = 4096
_REDIRECT = range(300, 400)
_SUCCESS = range(200, 300)
_GONE = 410
_WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429})
_SERVER_ERROR = 500


class Webhooks:
    """Sends alerts by HTTPS; plain HTTP only to addresses an operator allowed by name."""

    def __init__(
        self,
        secret_of: Callable[[str], Awaitable[bytes | None]],
        *,
        now: Callable[[], float],
        allowed: Sequence[Network] = (),
        seconds: float = 10.0,
    ) -> None:
        self._secret_of = secret_of
        self._now = now
        self._allowed = allowed
        self._timeout = aiohttp.ClientTimeout(total=seconds)

    async def send(self, alert: Alert, channel: Webhook) -> Result:
        """Post once."""
        if problem := url_problem(channel.url, insecure=True):
            return GiveUp(problem)
        parts = urlsplit(channel.url)
        host = parts.hostname or ""
        literal = _is_literal(host)
        # aiohttp asks its resolver for names only, so an address in the URL is checked here.
        if literal and not is_allowed(host, self._allowed):
            return GiveUp("the webhook leads to an address that is not public")
        resolver = _CheckedResolver(self._allowed)
        try:
            if parts.scheme != "https" and not await self._may_be_plain(host, parts.port or 80):
                return GiveUp("a webhook's URL begins with https://")
            secret = await self._secret_of(alert.tenant)
            if secret is None:
                return GiveUp("the tenant has no signing secret")
            content = body(alert)
            return await self._post(channel.url, content, self._headers(alert, content, secret), resolver)
        except _ForbiddenAddress:
            return GiveUp("the webhook leads to an address that is not public")
        except SnavioError as error:
            return TryAgain(f"the signing secret could not be read: {type(error).__name__}")
        except TimeoutError:
            return TryAgain("no answer in time")
        except ValueError:
            return GiveUp("the webhook's URL cannot be used")
        except (aiohttp.ClientError, OSError) as error:
            return TryAgain(f"no connection: {type(error).__name__}")

    def _headers(self, alert: Alert, content: bytes, secret: bytes) -> dict[str, str]:
        timestamp = str(int(self._now()))
        return {
            "Content-Type": "application/json",
            "User-Agent": "snavio-alerts/1",
            "X-Snavio-Alert-Id": alert.alert_id,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: signature(secret, timestamp, content),
        }

    async def _post(
        self, url: str, content: bytes, headers: dict[str, str], resolver: AbstractResolver
    ) -> Result:
        connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True)
        async with (
            aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.post(url, data=content, headers=headers, allow_redirects=False) as response,
        ):
            # Some servers reset a connection nobody reads from; a few bytes are enough to be polite.
            await response.content.read(_READ_BYTES)
            return judged(response.status)

    async def _may_be_plain(self, host: str, port: int) -> bool:
        addresses = await _addresses(host, port)
        return bool(addresses) and all(
            any(ipaddress.ip_address(address) in network for network in self._allowed)
            for address in addresses
        )


def judged(status: int) -> Result:
    """What an answer means."""
    if status in _SUCCESS:
        return Sent(f"answered {status}")
    if status in _REDIRECT:
        return GiveUp(f"answered {status}: redirects are not followed")
    if status == _GONE:
        return GiveUp("answered 410: gone")
    if status in _WORTH_ANOTHER_TRY or status >= _SERVER_ERROR:
        return TryAgain(f"answered {status}")
    return GiveUp(f"answered {status}")


class _ForbiddenAddress(aiohttp.ClientError):
    """A name has an address it must not have."""


class _CheckedResolver(AbstractResolver):
    """Resolves a name and refuses it whole if any of its addresses is not allowed."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses to connect to."""
        addresses = await _addresses(host, port, family)
        if any(not is_allowed(address, self._allowed) for address in addresses):
            raise _ForbiddenAddress(f"{host} has an address that is not public")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


async def _addresses(host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
