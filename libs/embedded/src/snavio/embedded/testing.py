"""Pytest fixtures that give tests a real AWS. The root `conftest.py` loads them.

The endpoint is the embedded AWS, one a session; or `SNAVIO_AWS_ENDPOINT_URL` when it is set; or a LocalStack container
when `SNAVIO_TEST_LOCALSTACK=1`, which needs Docker.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import msgspec
import pytest
from aiobotocore.session import AioSession

from snavio.embedded.launch import embedded_aws
from snavio.provisioning.apply import apply
from snavio.provisioning.describe import describe
from snavio.wire.names import Names

LOCALSTACK_IMAGE = "localstack/localstack:4.14.0"
"""The last release that runs without a licence token."""
REGION = "us-east-1"
T = TypeVar("T")


class Installation(msgspec.Struct, frozen=True):
    """A platform of a test's own, provisioned and empty, on an endpoint it shares with other tests."""

    names: Names
    endpoint_url: str
    session: AioSession
    """With the rights of the account's root."""

    def client(self, service: str, *, role: str | None = None) -> AbstractAsyncContextManager[Any]:
        """An aiobotocore client, as root; `async with platform.client("sqs") as sqs`.

        With a role, such as `platform.names.role("shield")`, the client has that role's rights alone.
        """
        keys = self.credentials(role) if role else {}
        client: Any = self.session.create_client(  # pyright: ignore[reportUnknownMemberType]
            service,
            region_name=self.names.region,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=keys.get("AccessKeyId"),
            aws_secret_access_key=keys.get("SecretAccessKey"),
            aws_session_token=keys.get("SessionToken"),
        )
        return client

    def queue_url(self, name: str) -> str:
        """The URL of a queue of the platform, or of any other in the account."""
        return f"{self.endpoint_url}/{self.names.account}/{name}"

    def credentials(self, role: str, *, session_name: str = "test") -> dict[str, str]:
        """Temporary keys of a role, as STS gives them."""

        async def assume() -> dict[str, str]:
            async with self.client("sts") as sts:
                answer = await sts.assume_role(
                    RoleArn=self.names.role_arn(role), RoleSessionName=session_name
                )
                return answer["Credentials"]

        return in_a_thread(assume())

    def environment(self, role: str | None = None) -> dict[str, str]:
        """The variables a process needs to find this platform, with a role's rights or root's."""
        if role:
            keys = self.credentials(role)
            found = {
                "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
                "AWS_SESSION_TOKEN": keys["SessionToken"],
            }
        else:
            keys = _root_keys()
            found = {"AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1]}
        return {
            **found,
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_REGION": self.names.region,
            "AWS_DEFAULT_REGION": self.names.region,
            "SNAVIO_PREFIX": self.names.prefix,
        }


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an AWS endpoint. Its account is shared by all tests: use names of your own, or `platform`."""
    if given := os.environ.get("SNAVIO_AWS_ENDPOINT_URL"):
        yield given
    elif os.environ.get("SNAVIO_TEST_LOCALSTACK") == "1":
        # Only this branch needs Docker's client libraries.
        from testcontainers.localstack import LocalStackContainer  # noqa: PLC0415

        with LocalStackContainer(LOCALSTACK_IMAGE) as container:
            yield container.get_url()
    else:
        with embedded_aws(tmp_path_factory.mktemp("aws")) as url:
            yield url


@pytest.fixture(scope="session")
def aws_session(aws_endpoint: str) -> AioSession:
    """A session with the rights of the account's root. Shared, because it keeps the service models it has read."""
    del aws_endpoint
    session: Any = AioSession()
    session.set_credentials(*_root_keys())
    return session


@pytest.fixture(scope="session")
def aws_account(aws_endpoint: str, aws_session: AioSession) -> str:
    """The account number behind the endpoint."""
    probe = Installation(Names(region=REGION), aws_endpoint, aws_session)

    async def ask() -> str:
        async with probe.client("sts") as sts:
            return (await sts.get_caller_identity())["Account"]

    return in_a_thread(ask())


@pytest.fixture
def platform(aws_endpoint: str, aws_session: AioSession, aws_account: str) -> Installation:
    """A freshly provisioned platform under a prefix of its own."""
    names = Names(prefix=f"t{uuid.uuid4().hex[:10]}", region=REGION, account=aws_account)
    in_a_thread(apply(describe(names), aws_session, endpoint_url=aws_endpoint))
    return Installation(names, aws_endpoint, aws_session)


def in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end in an event loop of its own: fixtures are synchronous, and a test's loop may be running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _root_keys() -> tuple[str, str]:
    return os.environ.get("AWS_ACCESS_KEY_ID", "test"), os.environ.get("AWS_SECRET_ACCESS_KEY", "test")
