"""The embedded AWS as its owner uses it: to provision, and to lend roles to services."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiobotocore.session import AioSession

from snavio.embedded.credentials import Assume, Credentials
from snavio.wire.names import Names

ACCOUNT = "000000000000"
"""The account of the embedded AWS."""
_KEY = "test"
"""The access key, and the secret, that are root there."""


def root_session() -> AioSession:
    """A session with every right on the embedded AWS."""
    session: Any = AioSession()
    session.set_credentials(_KEY, _KEY)
    return session


def root_environment(endpoint_url: str, region: str) -> dict[str, str]:
    """The same for AWS tools that look for it in the environment; an empty text stands for nothing."""
    return {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": _KEY,
        "AWS_SECRET_ACCESS_KEY": _KEY,
        "AWS_SESSION_TOKEN": "",
    }


@asynccontextmanager
async def lender(session: AioSession, names: Names, endpoint_url: str) -> AsyncGenerator[Assume]:
    """Gives temporary keys of a role while the block runs."""
    client: Any = session.create_client(  # pyright: ignore[reportUnknownMemberType]
        "sts", region_name=names.region, endpoint_url=endpoint_url
    )
    async with client as sts:

        async def assume(role: str) -> Credentials:
            arn = names.role_arn(role)
            keys = (await sts.assume_role(RoleArn=arn, RoleSessionName=role))["Credentials"]
            return Credentials(
                access_key_id=keys["AccessKeyId"],
                secret_access_key=keys["SecretAccessKey"],
                token=keys["SessionToken"],
                expiration=keys["Expiration"],
                role_arn=arn,
            )

        yield assume
