"""What every request passes before its handler: who asks, how often, and whether the request is well formed."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import ASGIApp, Method, Scopes

from snavio.control.access import Access
from snavio.control.authority import Principal
from snavio.control.decoding import faults_in, name_faults
from snavio.control.problems import raise_faults
from snavio.gateway.problems import Malformed, TooManyRequests
from snavio.gateway.rate import RateLimiter
from snavio.gateway.tokens import Tokens, Unauthenticated

PUBLIC = ["^/healthz$", "^/readyz$", "^/schema"]
_SCHEME = "bearer"


class Authentication(AbstractAuthenticationMiddleware):
    """Knows callers by their bearer tokens and holds each to the rate limit."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        access: Access,
        limiter: RateLimiter,
        exclude: str | list[str] | None = None,
        exclude_from_auth_key: str = "exclude_from_auth",
        exclude_http_methods: list[Method] | None = None,
        scopes: Scopes | None = None,
    ) -> None:
        super().__init__(app, exclude, exclude_from_auth_key, exclude_http_methods, scopes)
        self._tokens = tokens
        self._access = access
        self._limiter = limiter

    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        """The principal, as the request's user."""
        try:
            principal = await self._tokens.read(_bearer(connection))
        except Unauthenticated:
            # Guessing is limited by where it comes from, so that nobody can use up another's requests.
            self._limit(f"from {connection.client.host if connection.client else 'unknown'}")
            raise
        self._limit(f"by {principal.tenant} {principal.subject}")
        await self._access.confirm(principal)
        return AuthenticationResult(user=principal, auth=None)

    def _limit(self, caller: str) -> None:
        wait = self._limiter.take(caller)
        if wait:
            raise TooManyRequests(wait)


def principal_of(request: Request[Principal, Any, Any]) -> Principal:
    """The caller, for handlers."""
    return request.user


async def check_form(request: Request[Any, Any, Any]) -> None:
    """Name every fault in a request's path and body at once, before its handler sees it."""
    faults = name_faults({name: str(value) for name, value in request.path_params.items()})
    field = request.route_handler.parsed_data_field  # pyright: ignore[reportAttributeAccessIssue]
    body = await request.body() if field is not None else b""
    if field is not None and (body or not field.is_optional):
        try:
            value: object = msgspec.json.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise Malformed("malformed-json", "The body is not JSON.") from None
        faults += faults_in(value, field.annotation)
    raise_faults(faults)


def _bearer(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != _SCHEME or not token:
        raise Unauthenticated("Send a bearer token.")
    return token.strip()
