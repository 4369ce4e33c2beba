"""Credentials for the services, served as ECS serves a task its role's.

Each service gets a URL and a token of its own (`AWS_CONTAINER_CREDENTIALS_FULL_URI`, `AWS_CONTAINER_AUTHORIZATION_TOKEN`),
which every AWS SDK understands, and so runs with the rights of its task role and no others. SDKs ask again before the
credentials end.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import msgspec

_RENEW_WITH_LEFT = timedelta(minutes=20)
"""SDKs come back with 15 minutes left: what they get then must last longer."""
_PATIENCE_SECONDS = 5.0


class Credentials(msgspec.Struct, frozen=True, rename="pascal"):
    """Temporary keys, in the form of the ECS endpoint."""

    access_key_id: str
    secret_access_key: str
    token: str
    expiration: datetime
    role_arn: str


Assume = Callable[[str], Awaitable[Credentials]]
"""Temporary keys of a role, by its name."""


class CredentialsEndpoint:
    """Who may ask for which role, and what was last given out."""

    def __init__(self, assume: Assume, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._assume = assume
        self._now = now
        self._tokens: dict[str, str] = {}
        self._given: dict[str, Credentials] = {}
        self._port = 0

    def variables(self, role: str) -> dict[str, str]:
        """What a process needs in its environment to run as the role."""
        token = self._tokens.setdefault(role, secrets.token_urlsafe(32))
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{self._port}/{role}",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": token,
        }

    async def credentials(self, role: str, token: str) -> Credentials | None:
        """The role's keys, fresh enough to be worth giving; None when the token is not the role's."""
        expected = self._tokens.get(role)
        if expected is None or not hmac.compare_digest(expected.encode(), token.encode()):
            return None
        given = self._given.get(role)
        if given is None or given.expiration - self._now() < _RENEW_WITH_LEFT:
            given = self._given[role] = await self._assume(role)
        return given

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Answer on a free port of 127.0.0.1 while the block runs."""
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                role, token = _read(await reader.readuntil(b"\r\n\r\n"))
                found = await self.credentials(role, token)
                status, body = ("200 OK", msgspec.json.encode(found)) if found else ("403 Forbidden", b"{}")
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                )
                writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()


def _read(request: bytes) -> tuple[str, str]:
    first, *fields = request.decode("latin-1").split("\r\n")
    path = first.split(" ")[1]
    headers = dict(field.split(": ", 1) for field in fields if ": " in field)
    authorization = next((value for name, value in headers.items() if name.lower() == "authorization"), "")
    return path.removeprefix("/"), authorization
