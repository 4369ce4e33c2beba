"""Tenants as they are outside the platform: an AWS identity, a queue of their own, a key, and nothing else."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import msgspec
from aiobotocore.session import AioSession

from snavio.demo.http import Gateway
from snavio.wire.canonical import canonical
from snavio.wire.signing import SigningKey, framed
from snavio.wire.times import format_time

Until: TypeAlias = Callable[[list[dict[str, Any]]], bool]
_REGION = "us-east-1"
_ACCOUNT = "000000000000"


class Cloud:
    """AWS at one endpoint, seen with one identity."""

    def __init__(self, endpoint: str, keys: dict[str, str] | None = None) -> None:
        self._endpoint = endpoint
        self._keys = keys or {"AccessKeyId": "test", "SecretAccessKey": "test"}
        self._session = AioSession()

    def client(self, service: str) -> Any:
        """A client, as an async context manager."""
        return self._session.create_client(  # pyright: ignore[reportUnknownMemberType]
            service,
            region_name=_REGION,
            endpoint_url=self._endpoint,
            aws_access_key_id=self._keys["AccessKeyId"],
            aws_secret_access_key=self._keys["SecretAccessKey"],
            aws_session_token=self._keys.get("SessionToken"),
        )

    async def assume(self, role_arn: str, session_name: str) -> Cloud:
        """The same AWS with a role's identity."""
        async with self.client("sts") as sts:
            answer = await sts.assume_role(RoleArn=role_arn, RoleSessionName=session_name)
        return Cloud(self._endpoint, answer["Credentials"])


class Queue(msgspec.Struct, frozen=True):
    """A queue a tenant made for its commands."""

    url: str
    arn: str


class Tenant:
    """One tenant: what registration gave it, and what it does with it."""

    def __init__(self, name: str, root: Cloud, gateway: Gateway, registration: dict[str, Any]) -> None:
        self.name = name
        self.gateway = gateway
        self._root = root
        self._registration = registration
        self._secrets: dict[str, tuple[str, SigningKey]] = {}
        self.sender: Cloud = root
        """Its own identity, before it assumes the emit role."""

    @classmethod
    async def register(cls, name: str, root: Cloud, admin: Gateway, http_url: str) -> Tenant:
        """Make the tenant's sender role, in what stands for its own account, and register with the platform."""
        role = f"{name}-sender"
        trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{_ACCOUNT}:root"}, "Action": "sts:AssumeRole"}]}  # fmt: skip
        rights = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["sts:AssumeRole", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:DeleteMessageBatch"], "Resource": "*"}]}  # fmt: skip
        async with root.client("iam") as iam:
            await iam.create_role(RoleName=role, AssumeRolePolicyDocument=msgspec.json.encode(trust).decode())
            await iam.put_role_policy(
                RoleName=role, PolicyName="send", PolicyDocument=msgspec.json.encode(rights).decode()
            )
        arn = f"arn:aws:iam::{_ACCOUNT}:role/{role}"
        registration = await admin.call(
            "POST", "/api/v1/tenants", {"tenant": name, "sender_role_arns": [arn]}
        )
        tenant = cls(name, root, Gateway(http_url, registration["token"]), registration)
        tenant.sender = await root.assume(arn, role)
        return tenant

    async def add_service(self, service: str) -> str:
        """Register a service; its source."""
        answer = await self.gateway.call(
            "POST", f"/api/v1/tenants/{self.name}/services", {"service": service}
        )
        key = answer["key"]
        self._secrets[answer["source"]] = (key["version_id"], SigningKey(base64.b64decode(key["secret_b64"])))
        return answer["source"]

    async def make_queue(self, name: str) -> Queue:
        """A Standard queue with encryption and a dead-letter queue, as routes require."""
        async with self._root.client("sqs") as sqs:
            encrypted = {"KmsMasterKeyId": "alias/aws/sqs"}
            await sqs.create_queue(QueueName=f"{name}-dlq", Attributes=encrypted)
            redrive = {
                "deadLetterTargetArn": f"arn:aws:sqs:{_REGION}:{_ACCOUNT}:{name}-dlq",
                "maxReceiveCount": 5,
            }
            policy = {"Version": "2012-10-17", "Statement": [
                {"Effect": "Allow", "Principal": {"AWS": [f"arn:aws:iam::{_ACCOUNT}:role/snavio-fast", f"arn:aws:iam::{_ACCOUNT}:role/snavio-slow"]}, "Action": "sqs:SendMessage", "Resource": "*"},
                {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{_ACCOUNT}:role/snavio-monitor"}, "Action": "sqs:GetQueueAttributes", "Resource": "*"},
            ]}  # fmt: skip
            attributes = {
                **encrypted,
                "RedrivePolicy": msgspec.json.encode(redrive).decode(),
                "Policy": msgspec.json.encode(policy).decode(),
            }
            answer = await sqs.create_queue(QueueName=name, Attributes=attributes)
        return Queue(answer["QueueUrl"], f"arn:aws:sqs:{_REGION}:{_ACCOUNT}:{name}")

    async def emitter(self) -> Cloud:
        """Its identity on the bus: the emit role, assumed under the name of its own role."""
        return await self.sender.assume(self._registration["emit_role_arn"], f"{self.name}-sender")

    def entry(self, source: str, target: str, name: str, payload: object, **changes: Any) -> dict[str, str]:
        """A signed command as an entry for PutEvents. `changes` spoil it after signing."""
        version_id, key = self._secrets[source]
        command_id = changes.pop("id", None) or str(uuid.uuid4())
        timestamp = format_time(time.time() + changes.pop("clock_off_by", 0.0))
        frame = framed(version_id, command_id, timestamp, target, name)
        detail: dict[str, Any] = {
            "metadata": {"id": command_id, "timestamp": timestamp, "type": "snavio.command-sent", "version_id": version_id, "hmac": key.sign(frame, canonical(payload))},
            "command": {"target": target, "name": name, "payload": payload},
        }  # fmt: skip
        detail["command"].update(changes.pop("command", {}))
        detail["metadata"].update(changes)
        return {
            "EventBusName": "snavio-command-bus",
            "Source": source,
            "DetailType": "snavio.command-sent",
            "Detail": msgspec.json.encode(detail).decode(),
        }

    async def telemetry(self, *, until: Until, seconds: float) -> list[dict[str, Any]]:
        """Read its telemetry queue until `until(events)` holds or the time is up."""
        return await read_queue(
            self.sender, self._registration["telemetry_queue_url"], until=until, seconds=seconds
        )


async def put_events(cloud: Cloud, entries: list[dict[str, str]]) -> int:
    """Put commands on the bus; how many entries were refused."""
    refused = 0
    async with cloud.client("events") as events:
        for start in range(0, len(entries), 10):
            answer = await events.put_events(Entries=entries[start : start + 10])
            refused += answer["FailedEntryCount"]
    return refused


async def read_queue(cloud: Cloud, url: str, *, until: Until, seconds: float) -> list[dict[str, Any]]:
    """Receive and delete until `until(found)` holds or the time is up; each body once, decoded."""
    found: list[dict[str, Any]] = []
    async with cloud.client("sqs") as sqs:
        with anyio.move_on_after(seconds):
            while not until(found):
                answer = await sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
                messages = answer.get("Messages", [])
                if not messages:
                    continue
                found += [msgspec.json.decode(message["Body"]) for message in messages]
                entries = [
                    {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)
                ]
                await sqs.delete_message_batch(QueueUrl=url, Entries=entries)
    return found
