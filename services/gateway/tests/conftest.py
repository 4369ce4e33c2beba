"""The API in process, on a platform of the test's own, with the rights of the gateway's role and no others."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jwt
import pytest

from snavio.aws.boto.session import Aws, open_aws
from snavio.control.control import Control, control_of
from snavio.embedded.testing import Installation
from snavio.gateway.app import make_app
from snavio.gateway.rate import RateLimiter
from snavio.gateway.site import Site
from snavio.gateway.tokens import TokenRules, Tokens
from snavio.runtime.logs import recording_log

SECRET = b"a secret for tests, of thirty-two bytes and more"


class Clock:
    """The real time, moved ahead at will."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Caller:
    """Somebody with a token."""

    def __init__(self, client: httpx.AsyncClient, token: str | None, lines: list[dict[str, Any]]) -> None:
        self._client = client
        self._lines = lines
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.token = token

    async def ask(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None
    ) -> httpx.Response:
        """One request to the API; `raw` in place of JSON."""
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        return await self._client.request(method, path, content=content, headers=self._headers)

    async def do(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """The answer's document, which must come with this status."""
        answer = await self.ask(method, path, body)
        assert answer.status_code == status, (answer.text, self._lines[-3:])
        return answer.json() if answer.content else None

    async def refused(self, method: str, path: str, body: Any = None, *, status: int, kind: str) -> Any:
        """The problem document of a refusal."""
        answer = await self.ask(method, path, body)
        assert answer.status_code == status, (answer.text, self._lines[-3:])
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["type"] == f"urn:snavio:problem:{kind}", problem
        assert problem["status"] == status
        return problem


class Api:
    """The API of one platform."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        control: Control,
        platform: Installation,
        clock: Clock,
        lines: list[dict[str, Any]],
    ) -> None:
        self.client = client
        self.control = control
        self.platform = platform
        self.names = platform.names
        self.clock = clock
        self.lines = lines
        self.admin = self.caller(roles=["Admin"])
        self.nobody = Caller(client, None, lines)

    def caller(self, **claims: Any) -> Caller:
        """Somebody with claims of the test's choice."""
        now = int(time.time())
        signed = jwt.encode(
            {"sub": "tester", "iat": now, "exp": now + 600, **claims}, SECRET, algorithm="HS256"
        )
        return Caller(self.client, signed, self.lines)

    async def tenant(self, name: str, **body: Any) -> Caller:
        """A registered tenant, as the caller its own token makes."""
        made = await self.admin.do("POST", "/api/v1/tenants", {"tenant": name, **body}, status=201)
        return Caller(self.client, made["token"], self.lines)

    async def service(self, tenant: Caller, source: str, **body: Any) -> dict[str, Any]:
        """A registered service."""
        name, _, service = source.partition("/")
        path = f"/api/v1/tenants/{name}/services"
        return await tenant.do("POST", path, {"service": service, **body}, status=201)

    async def queue(self, name: str, *, dlq: bool = True, **attributes: str) -> str:
        """A queue fit to be a target's, unless told otherwise; its ARN."""
        async with self.platform.client("sqs") as sqs:
            wanted = {"KmsMasterKeyId": self.names.queues_key, **attributes}
            if dlq:
                await sqs.create_queue(QueueName=f"{name}-dlq")
                redrive = {"deadLetterTargetArn": self.names.queue_arn(f"{name}-dlq"), "maxReceiveCount": 3}
                wanted["RedrivePolicy"] = json.dumps(redrive)
            await sqs.create_queue(QueueName=name, Attributes={k: v for k, v in wanted.items() if v})
        return self.names.queue_arn(name)

    async def sender(self, name: str, **policy: Any) -> str:
        """A role of a tenant's own, which the account's root may assume; its ARN."""
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": f"arn:aws:iam::{self.names.account}:root"},
                    "Action": "sts:AssumeRole",
                }
            ],
        }
        allowed = {
            "Version": "2012-10-17",
            "Statement": [policy or {"Effect": "Allow", "Action": "*", "Resource": "*"}],
        }
        async with self.platform.client("iam") as iam:
            await iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
            await iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=json.dumps(allowed))
        return self.names.role_arn(name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def gateway_aws(platform: Installation, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Aws]:
    """AWS with the rights of the gateway's role and no others."""
    for name, value in platform.environment(platform.names.role("gateway")).items():
        monkeypatch.setenv(name, value)
    async with open_aws() as aws:
        yield aws


@pytest.fixture
async def api(gateway_aws: Aws, platform: Installation, clock: Clock) -> AsyncIterator[Api]:
    control = control_of(gateway_aws, platform.names, clock=clock)
    site = Site(
        control=control,
        tokens=Tokens(secret=SECRET, keys=None, rules=TokenRules(), clock=clock),
        names=platform.names,
        queue_url=gateway_aws.queues.url_of,
        replay_window_seconds=60.0,
        poll_interval_seconds=43_200.0,
        ailments=list,
        unready=list,
    )
    lines: list[dict[str, Any]] = []
    limiter = RateLimiter(per_minute=60_000, burst=10_000, clock=clock)
    app = make_app(site, limiter=limiter, max_body_bytes=65_536, log=recording_log(lines))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app, raise_app_exceptions=False), base_url="http://gateway"
    ) as client:
        yield Api(client, control, platform, clock, lines)
