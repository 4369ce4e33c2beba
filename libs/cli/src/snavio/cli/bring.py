"""What a tenant's team brings: a role to send with, a queue to receive on. Made to fit, for those who have none yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import Permanent
from snavio.cli.connection import Connection
from snavio.wire.names import Names

T = TypeVar("T")
_RECEIVES = 5


class Account:
    """The caller's own AWS account."""

    def __init__(self, connection: Connection, stack: AsyncExitStack) -> None:
        self._connection = connection
        self._session: Any = connection.session()
        self._stack = stack

    async def client(self, service: str) -> Any:
        """A client that lives as long as the account is open."""
        return await self._stack.enter_async_context(
            self._session.create_client(
                service,
                region_name=self._connection.region,
                endpoint_url=self._connection.aws_endpoint_url,
            )
        )

    async def identity(self) -> dict[str, str]:
        """Who the caller is: `Account` and `Arn`."""
        sts = await self.client("sts")
        with translated("GetCallerIdentity"):
            return await sts.get_caller_identity()


@asynccontextmanager
async def account_of(connection: Connection) -> AsyncGenerator[Account]:
    """The account, with clients opened as they are needed."""
    async with AsyncExitStack() as stack:
        yield Account(connection, stack)


def in_account(connection: Connection, work: Callable[[Account], Awaitable[T]]) -> T:
    """Do something in the caller's account."""

    async def run() -> T:
        async with account_of(connection) as account:
            return await work(account)

    return asyncio.run(run())


async def new_sender(account: Account, role: str) -> str:
    """A role that may send and read its telemetry, which anyone in the account who may assume roles can use; its ARN."""
    who = await account.identity()
    root = f"arn:aws:iam::{who['Account']}:root"
    arn = f"arn:aws:iam::{who['Account']}:role/{role}"
    iam = await account.client("iam")
    trust = _document({"Effect": "Allow", "Principal": {"AWS": root}, "Action": "sts:AssumeRole"})
    # What it may do is decided on the platform's side too: only emit roles and queues that name it let it in.
    rights = _document(
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "arn:aws:iam::*:role/*-emit-*"},
        {
            "Effect": "Allow",
            "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            "Resource": "arn:aws:sqs:*:*:*-telemetry-*",
        },
    )
    try:
        with translated("CreateRole"):
            await iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust)
    except Permanent as refused:
        if "EntityAlreadyExists" not in refused.code:
            raise
    with translated("PutRolePolicy"):
        await iam.put_role_policy(RoleName=role, PolicyName="snavio-sender", PolicyDocument=rights)
    return arn


async def new_queue(account: Account, queue: str, names: Names) -> str:
    """A queue fit to be a target's: Standard, encrypted, with a dead-letter queue, open to the dispatchers; its ARN."""
    who = await account.identity()
    sqs = await account.client("sqs")
    arn = f"arn:{names.partition}:sqs:{names.region}:{who['Account']}:{queue}"
    encrypted = {"KmsMasterKeyId": "alias/aws/sqs"}
    policy = _document(
        *(
            {
                "Effect": "Allow",
                "Principal": {"AWS": names.role_arn(names.role(role))},
                "Action": action,
                "Resource": arn,
            }
            for role, action in (
                ("fast", "sqs:SendMessage"),
                ("slow", "sqs:SendMessage"),
                ("monitor", "sqs:GetQueueAttributes"),
                ("gateway", "sqs:GetQueueAttributes"),
            )
        )
    )
    redrive = {"deadLetterTargetArn": f"{arn}-dlq", "maxReceiveCount": _RECEIVES}
    for name, attributes in (
        (f"{queue}-dlq", encrypted),
        (queue, {**encrypted, "RedrivePolicy": _text(redrive), "Policy": policy}),
    ):
        with translated("CreateQueue"):
            url = (await sqs.create_queue(QueueName=name))["QueueUrl"]
        with translated("SetQueueAttributes"):
            await sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    return arn


def _document(*statements: dict[str, Any]) -> str:
    return _text({"Version": "2012-10-17", "Statement": list(statements)})


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
