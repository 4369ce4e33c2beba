"""AWS, opened once a process: `async with open_aws() as aws: await aws.queues.receive(...)`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.aws.boto.calls import BotoCall
from snavio.aws.boto.clients import Clients
from snavio.aws.boto.config import CONNECT_TIMEOUT
from snavio.aws.boto.objects import S3Objects
from snavio.aws.dynamodb import DynamoTables
from snavio.aws.kms import KmsVault
from snavio.aws.lean.calls import DYNAMODB, SQS, LeanCall
from snavio.aws.ports import Objects, Queues, Tables, Vault
from snavio.aws.retry import Retrying
from snavio.aws.sqs import SqsQueues

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from aiobotocore.session import AioSession

    from snavio.aws.call import Call
    from snavio.aws.lean.calls import JsonService


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
    *,
    session: AioSession | None = None,
    region: str | None = None,
    endpoint_url: str | None = None,
    lean: bool = True,
) -> AsyncGenerator[Aws]:
    """The ports, with endpoint, region and credentials found as every AWS tool finds them.

    SQS and DynamoDB are carried by the lean client, at a tenth of the cost, unless `lean` is False or the environment
    asks for a proxy; S3, KMS and the clients handed out raw are aiobotocore's, opened when first used. Raises `Permanent`
    when no region is configured.
    """
    async with AsyncExitStack() as closing:
        clients = Clients(closing, session=session, region=region, endpoint_url=endpoint_url)
        sqs = await clients.port("sqs")
        queue_call = await _lean(SQS, clients, closing) if lean else BotoCall(clients, "sqs")
        table_call = await _lean(DYNAMODB, clients, closing) if lean else BotoCall(clients, "dynamodb")
        yield Aws(
            queues=SqsQueues(Retrying(queue_call), sqs.meta.endpoint_url),
            tables=DynamoTables(Retrying(table_call)),
            objects=S3Objects(clients),
            vault=KmsVault(Retrying(BotoCall(clients, "kms"))),
            client=clients.raw,
            region=sqs.meta.region_name,
        )


async def _lean(service: JsonService, clients: Clients, closing: AsyncExitStack) -> Call:
    """The small client at the endpoint, region and credentials botocore has found for the service."""
    client = await clients.port(service.signing_name)
    endpoint_url = str(client.meta.endpoint_url)
    if clients.has_proxy(endpoint_url):
        return BotoCall(clients, service.signing_name)
    call = LeanCall(
        service,
        endpoint_url=endpoint_url,
        region=str(client.meta.region_name),
        credentials=clients.keys,
        tls=clients.tls() if endpoint_url.startswith("https:") else None,
        connect_timeout=CONNECT_TIMEOUT,
    )
    closing.push_async_callback(call.aclose)
    return call
