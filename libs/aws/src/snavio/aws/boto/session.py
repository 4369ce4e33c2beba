"""AWS, opened once a process: `async with open_aws() as aws: await aws.queues.receive(...)`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.aws.boto.calls import BotoCall
from snavio.aws.boto.clients import Clients
from snavio.aws.boto.objects import S3Objects
from snavio.aws.dynamodb import DynamoTables
from snavio.aws.kms import KmsVault
from snavio.aws.ports import Objects, Queues, Tables, Vault
from snavio.aws.retry import Retrying
from snavio.aws.sqs import SqsQueues

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from aiobotocore.session import AioSession


class Aws(msgspec.Struct, frozen=True):
    """The ports on one endpoint with one identity.

    `await client("sts")` gives a raw aiobotocore client for the rare calls no port covers; it lives as long as this.
    """

    queues: Queues
    tables: Tables
    objects: Objects
    vault: Vault
    client: Callable[[str], Awaitable[Any]]
    region: str


@asynccontextmanager
async def open_aws(
    *, session: AioSession | None = None, region: str | None = None, endpoint_url: str | None = None
) -> AsyncGenerator[Aws]:
    """The ports, with endpoint, region and credentials found as every AWS tool finds them.

    Raises `Permanent` when no region is configured. Clients other than SQS's are opened when first used.
    """
    async with AsyncExitStack() as closing:
        clients = Clients(closing, session=session, region=region, endpoint_url=endpoint_url)
        sqs = await clients.port("sqs")
        yield Aws(
            queues=SqsQueues(Retrying(BotoCall(clients, "sqs")), sqs.meta.endpoint_url),
            tables=DynamoTables(Retrying(BotoCall(clients, "dynamodb"))),
            objects=S3Objects(clients),
            vault=KmsVault(Retrying(BotoCall(clients, "kms"))),
            client=clients.raw,
            region=sqs.meta.region_name,
        )
