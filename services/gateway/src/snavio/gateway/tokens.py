"""Bearer tokens: the gateway's own, signed with a secret, and an identity provider's, checked against its public keys.

Which check applies follows from the algorithm, and each kind of key is only ever used with its own algorithms, so a
public key cannot be passed off as a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import jwt
import msgspec

from snavio.aws.errors import SnavioError
from snavio.control.authority import Principal, Role

_OWN = "HS256"
_THEIRS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
_ISSUER = "snavio"
_LEEWAY_SECONDS = 30
_LEAST_SECRET_BYTES = 32
_KNOWN = {role.value: role for role in Role}


class Unauthenticated(SnavioError):  # noqa: N818 - reads as what the caller is told
    """The token does not prove who is asking."""


class SigningKeys(Protocol):
    """An identity provider's public keys."""

    async def key(self, key_id: str | None) -> Any:
        """The key with this id. Raises `Unauthenticated` when there is none."""
        ...


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """What tokens of an identity provider must say, and how long the gateway's own last."""

    issuer: str | None = None
    audience: str | None = None
    lifetime_seconds: float = 90 * 24 * 3600.0


def read_secret(raw: bytes) -> bytes:
    """The secret in a file. Raises `ValueError` when it is too short to be one."""
    secret = raw.strip()
    if len(secret) < _LEAST_SECRET_BYTES:
        raise ValueError(f"the secret of the gateway's tokens has fewer than {_LEAST_SECRET_BYTES} bytes")
    return secret


class Tokens:
    """Reads every token, and issues a tenant's where the gateway has a secret of its own."""

    def __init__(
        self,
        *,
        secret: bytes | None,
        keys: SigningKeys | None,
        rules: TokenRules,
        clock: Callable[[], float],
    ) -> None:
        self._secret = secret
        self._keys = keys
        self._rules = rules
        self._clock = clock

    async def read(self, token: str) -> Principal:
        """Who the bearer is. Raises `Unauthenticated`."""
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm == _OWN and self._secret is not None:
                claims = self._decode(token, self._secret, [_OWN])
            elif algorithm in _THEIRS and self._keys is not None:
                key = await self._keys.key(header.get("kid"))
                claims = self._decode(
                    token, key, [algorithm], issuer=self._rules.issuer, audience=self._rules.audience
                )
            else:
                raise Unauthenticated("The token is not signed in a way accepted here.")
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("The token has expired.") from None
        except (jwt.PyJWTError, TypeError, ValueError, OverflowError, RecursionError):
            # Also for a key of another kind than the algorithm the token names, and for parts no reader can follow.
            raise Unauthenticated("The token is not valid.") from None
        return principal_of(claims)

    def issue(self, tenant: str, registration: str) -> str | None:
        """A tenant's token; None where an identity provider issues them all."""
        if self._secret is None:
            return None
        now = int(self._clock())
        claims = {
            "iss": _ISSUER,
            "sub": f"tenant:{tenant}",
            "roles": [Role.TENANT.value],
            "tenant": tenant,
            "registration": registration,
            "iat": now,
            "exp": now + int(self._rules.lifetime_seconds),
        }
        return jwt.encode(claims, self._secret, algorithm=_OWN)

    def _decode(
        self,
        token: str,
        key: Any,
        algorithms: list[str],
        *,
        issuer: str | None = None,
        audience: str | None = None,
    ) -> dict[str, Any]:
        decode = cast("Callable[..., dict[str, Any]]", jwt.decode)
        return decode(
            token,
            key,
            algorithms=algorithms,
            issuer=issuer,
            audience=audience,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["sub", "exp"], "verify_aud": audience is not None},
        )


def principal_of(claims: dict[str, Any]) -> Principal:
    """Who the claims speak of. Raises `Unauthenticated` when they are not of the form agreed."""
    subject, roles, tenant = claims.get("sub"), claims.get("roles", []), claims.get("tenant")
    registration = claims.get("registration")
    if not isinstance(subject, str) or not subject:
        raise Unauthenticated("The token names nobody.")
    if not isinstance(roles, list) or not isinstance(tenant, str | None):
        raise Unauthenticated("The token's roles or tenant are not as agreed.")
    # Roles of other parts of the platform may stand here too.
    known = frozenset(
        _KNOWN[role] for role in cast("list[Any]", roles) if isinstance(role, str) and role in _KNOWN
    )
    if tenant is None and Role.TENANT in known:
        raise Unauthenticated("The token has the role Tenant and names no tenant.")
    return Principal(
        subject=subject,
        roles=known,
        tenant=tenant,
        registration=registration if isinstance(registration, str) else None,
    )
