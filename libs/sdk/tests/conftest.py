"""A tenant on the embedded AWS: bus, ingress queue, roles, a target's queue, and a gateway that serves its config."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import AsyncExitStack

import msgspec
import pytest
from aiobotocore.session import AioSession
from aiohttp import web

from snavio.domain.screening import ScreeningPolicy, screen
from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.tenant_config import TenantConfig
from snavio.sdk.testing.registry import MemoryRegistry

ACCOUNT = "000000000000"
REGION = "us-east-1"


def allow(service):
    return {"Effect": "Allow", "Action": f"{service}:*", "Resource": "*"}


class Stage:
    """What a test needs of one tenant, `acme`, with one service, `acme/billing`."""

    token = "token-of-acme"
    source = "acme/billing"

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.unique = uuid.uuid4().hex[:8]
        self.registry = MemoryRegistry()
        self.registry.add_key(self.source, previous_ends_at=0)
        self.polls = 0
        self.url = ""
        self.clients = {}
        self.sender_keys = {}

    def aws(self, **options):
        session = AioSession()
        session.set_credentials(*self.sender_keys.values())
        return AwsOptions(region=REGION, endpoint_url=self.endpoint, session=session, **options)

    def root(self):
        session = AioSession()
        session.set_credentials("test", "test")
        return AwsOptions(region=REGION, endpoint_url=self.endpoint, session=session)

    def environment(self, keys=None):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return {
            **dict(zip(names, (keys or self.sender_keys).values(), strict=False)),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "SNAVIO_URL": self.url,
            "SNAVIO_TOKEN": self.token,
            "SNAVIO_SOURCE": self.source,
            "QUEUE_URL": self.queue_url,
        }

    @property
    def bus(self):
        return f"bus-{self.unique}"

    @property
    def emit_role_arn(self):
        return f"arn:aws:iam::{ACCOUNT}:role/snavio-emit-{self.unique}"

    def config(self) -> TenantConfig:
        return TenantConfig(
            tenant="acme",
            services=self.registry.services_of("acme"),
            bus=self.bus,
            emit_role_arn=self.emit_role_arn,
            telemetry_queue_url=self.telemetry_url,
            poll_interval_seconds=3600,
        )

    async def client(self, service):
        """A client with the rights of the account's root."""
        if service not in self.clients:
            self.clients[service] = await self.root().client(self.stack, service)
        return self.clients[service]

    async def provision(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        for service in ("events", "sqs", "iam", "sts"):
            await self.client(service)
        events, sqs = self.clients["events"], self.clients["sqs"]
        await events.create_event_bus(Name=self.bus)
        self.ingress_url, ingress_arn = await self.queue("ingress")
        self.telemetry_url, _ = await self.queue("telemetry")
        self.dlq_url, dlq_arn = await self.queue("target-dlq")
        redrive = json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": 3})
        self.queue_url, _ = await self.queue("target", RedrivePolicy=redrive)
        self.sqs = sqs
        pattern = json.dumps({"detail-type": ["snavio.command-sent"]})
        await events.put_rule(Name="commands", EventBusName=self.bus, EventPattern=pattern)
        await events.put_targets(
            Rule="commands", EventBusName=self.bus, Targets=[{"Id": "ingress", "Arn": ingress_arn}]
        )
        await self.make_roles()

    async def queue(self, name, **attributes):
        made = await self.clients["sqs"].create_queue(
            QueueName=f"{name}-{self.unique}", Attributes=attributes
        )
        return made["QueueUrl"], f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}-{self.unique}"

    async def make_roles(self) -> None:
        """The sender's role may only assume the emit role, and that only under its own name."""
        iam, sender = self.clients["iam"], f"billing-{self.unique}"
        sender_arn = f"arn:aws:iam::{ACCOUNT}:role/{sender}"
        trust_account = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}
        trust_sender = {
            "Effect": "Allow",
            "Principal": {"AWS": sender_arn},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:RoleSessionName": sender}},
        }
        emit = {
            "Effect": "Allow",
            "Action": "events:PutEvents",
            "Resource": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{self.bus}",
            "Condition": {
                "StringEquals": {"events:source": self.source},
                "StringLike": {"aws:userid": f"*:{sender}"},
            },
        }
        assume = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": self.emit_role_arn}
        for name, trust, policy in (
            (sender, trust_account, [assume, allow("sqs"), allow("dynamodb"), allow("s3")]),
            (f"snavio-emit-{self.unique}", trust_sender, [emit]),
        ):
            await iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
            document = json.dumps({"Version": "2012-10-17", "Statement": policy})
            await iam.put_role_policy(RoleName=name, PolicyName="inline", PolicyDocument=document)
        answer = await self.clients["sts"].assume_role(RoleArn=sender_arn, RoleSessionName="task-1")
        given = answer["Credentials"]
        self.sender_keys = {k: given[k] for k in ("AccessKeyId", "SecretAccessKey", "SessionToken")}

    async def arrived(self, wanted: int, *, within: float = 30.0):
        """What the platform makes of the messages that came in over the bus: one screening each, by command id."""
        found = {}
        deadline = time.monotonic() + within
        while len(found) < wanted and time.monotonic() < deadline:
            answer = await self.sqs.receive_message(
                QueueUrl=self.ingress_url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["SentTimestamp"],
            )
            messages = answer.get("Messages", ())
            for message in messages:
                at = int(message["Attributes"]["SentTimestamp"]) / 1000
                body = message["Body"]
                command_id = json.loads(body)["detail"]["metadata"]["id"]
                found.setdefault(command_id, []).append(screen(body, at, self.registry, ScreeningPolicy()))
            if messages:
                entries = [
                    {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)
                ]
                await self.sqs.delete_message_batch(QueueUrl=self.ingress_url, Entries=entries)
        return found

    async def serve(self, stack: AsyncExitStack) -> None:
        async def tenant_config(request: web.Request) -> web.Response:
            if request.headers.get("Authorization") != f"Bearer {self.token}":
                problem = {
                    "type": "about:blank",
                    "title": "Unauthorized",
                    "detail": "The token is not valid.",
                }
                return web.json_response(problem, status=401)
            self.polls += 1
            return web.Response(body=msgspec.json.encode(self.config()), content_type="application/json")

        app = web.Application()
        app.router.add_get("/api/v1/tenant-config", tenant_config)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"


@pytest.fixture
async def stage(aws_endpoint):
    async with AsyncExitStack() as stack:
        made = Stage(aws_endpoint)
        await made.provision(stack)
        await made.serve(stack)
        yield made


@pytest.fixture
def eventually():
    """Wait for a condition, with a deadline."""

    async def wait(condition, *, within: float = 20.0) -> None:
        async with asyncio.timeout(within):
            while True:
                result = condition()
                if asyncio.iscoroutine(result):
                    result = await result
                if result:
                    return
                await asyncio.sleep(0.02)

    return wait
