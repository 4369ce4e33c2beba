from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from snavio.control.authority import Role
from snavio.control.problems import Unavailable
from snavio.gateway.jwks import Jwks
from snavio.gateway.rate import RateLimiter
from snavio.gateway.tokens import TokenRules, Tokens, Unauthenticated, read_secret

SECRET = b"a secret for tests, of thirty-two bytes and more"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())


def claims(**changed: Any) -> dict[str, Any]:
    return {"sub": "ann", "roles": ["Admin"], "exp": int(time.time()) + 60, **changed}


def own(secret: bytes | None = SECRET) -> Tokens:
    return Tokens(secret=secret, keys=None, rules=TokenRules(), clock=time.time)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "a.b.c",
        jwt.encode(claims(), b"another secret, also of thirty-two bytes", algorithm="HS256"),
        jwt.encode(claims(), SECRET, algorithm="HS384"),
        jwt.encode(claims(), None, algorithm="none"),
        jwt.encode(claims(exp=1), SECRET, algorithm="HS256"),
        jwt.encode({"sub": "ann", "roles": ["Admin"]}, SECRET, algorithm="HS256"),
        jwt.encode({"roles": ["Admin"], "exp": 9_999_999_999}, SECRET, algorithm="HS256"),
        jwt.encode(claims(roles="Admin"), SECRET, algorithm="HS256"),
        jwt.encode(claims(tenant=7), SECRET, algorithm="HS256"),
        jwt.encode(claims(roles=["Tenant"]), SECRET, algorithm="HS256"),
        jwt.encode(claims(), RSA, algorithm="RS256"),
    ],
)
async def test_what_proves_nothing_is_refused(token):
    with pytest.raises(Unauthenticated):
        await own().read(token)


async def test_a_tenants_token_says_whose_it_is_and_nothing_more():
    principal = await own().read(own().issue("acme", "first") or "")
    assert principal.tenant == "acme"
    assert principal.roles == {Role.TENANT}
    assert principal.registration == "first"
    assert own(None).issue("acme", "first") is None


async def test_roles_of_other_parts_are_ignored():
    principal = await own().read(
        jwt.encode(claims(roles=["Viewer", "Producer", 7]), SECRET, algorithm="HS256")
    )
    assert principal.roles == {Role.VIEWER}


@pytest.mark.parametrize("raw", [b"", b"short", b" " * 64])
def test_a_secret_anybody_could_guess_is_refused(raw):
    with pytest.raises(ValueError, match="fewer than 32 bytes"):
        read_secret(raw)


class Provider:
    """An identity provider that can be told to fail."""

    def __init__(self) -> None:
        self.keys = {"rsa": RSA, "ec": EC}
        self.asked = 0
        self.broken = False

    async def answer(self, _request: web.Request) -> web.Response:
        self.asked += 1
        if self.broken:
            return web.Response(status=500)
        listed = []
        for key_id, key in self.keys.items():
            algorithm = jwt.algorithms.RSAAlgorithm if key is RSA else jwt.algorithms.ECAlgorithm
            listed.append({**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id})
        return web.json_response({"keys": listed})


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider()
    app = web.Application()
    app.router.add_get("/keys", provider.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}/keys"
    yield provider
    await runner.cleanup()


async def test_an_identity_providers_tokens_are_checked_against_its_keys(provider):
    now = time.time()
    moment = [now]
    rules = TokenRules(issuer="https://idp.test", audience="snavio")
    tokens = Tokens(
        secret=SECRET, keys=Jwks(provider.url, clock=lambda: moment[0]), rules=rules, clock=lambda: moment[0]
    )
    named = claims(iss="https://idp.test", aud="snavio")
    good = [
        jwt.encode(named, RSA, algorithm="RS256", headers={"kid": "rsa"}),
        jwt.encode(named, EC, algorithm="ES256", headers={"kid": "ec"}),
    ]
    for token in good:
        assert (await tokens.read(token)).is_admin
    assert provider.asked == 1

    public = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for forged in (
        jwt.encode(
            claims(iss="https://other.test", aud="snavio"), RSA, algorithm="RS256", headers={"kid": "rsa"}
        ),
        jwt.encode(
            claims(iss="https://idp.test", aud="other"), RSA, algorithm="RS256", headers={"kid": "rsa"}
        ),
        jwt.encode(named, RSA, algorithm="RS256", headers={"kid": "unknown"}),
        jwt.encode(named, EC, algorithm="ES256", headers={"kid": "rsa"}),
        _signed_as_secret(named, public),
    ):
        with pytest.raises(Unauthenticated):
            await tokens.read(forged)
    # Unknown keys do not make the gateway ask again and again.
    assert provider.asked == 1

    # The provider's outage is not ours while its keys are remembered.
    provider.broken = True
    moment[0] += 3600
    assert (
        await tokens.read(
            jwt.encode({**named, "exp": int(now) + 9999}, RSA, algorithm="RS256", headers={"kid": "rsa"})
        )
    ).is_admin
    with pytest.raises(Unavailable):
        await Jwks(provider.url, clock=time.time).key("rsa")


def _signed_as_secret(payload: dict[str, Any], public: bytes) -> str:
    """The classic forgery: the public key, which everybody has, used as if it were the secret."""
    import hashlib  # noqa: PLC0415
    import hmac  # noqa: PLC0415

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    signed = part({"alg": "HS256", "kid": "rsa"}) + b"." + part(payload)
    mac = base64.urlsafe_b64encode(hmac.new(public, signed, hashlib.sha256).digest()).rstrip(b"=")
    return (signed + b"." + mac).decode()


def test_a_caller_may_burst_then_go_at_the_rate_and_no_faster():
    moment = [0.0]
    limiter = RateLimiter(per_minute=60, burst=3, clock=lambda: moment[0], most_callers=2)
    assert [limiter.take("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.take("a") == pytest.approx(1.0)
    assert limiter.take("b") == 0
    moment[0] += 0.5
    assert limiter.take("a") == pytest.approx(0.5)
    moment[0] += 0.5
    assert limiter.take("a") == 0
    # Whoever was seen longest ago is forgotten first: memory is bounded.
    limiter.take("b")
    limiter.take("c")
    assert len(limiter._buckets) == 2
