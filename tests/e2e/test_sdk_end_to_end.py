"""The SDK on the whole platform: its README as written, Node.js, and a key rotated in mid-stream, with every service real."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiobotocore.session import AioSession

from snavio.demo.http import Gateway
from snavio.demo.platform import running_platform
from snavio.demo.tenants import Cloud, Tenant
from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.producer import Producer
from snavio.sdk.telemetry import Telemetry
from snavio.wire.events import CommandDelivered, CommandInvalid

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
README = (ROOT / "libs/sdk/README.md").read_text()
PAIR = ("discord-bot", "notify-user")


class World:
    """A platform with a sender, `acme/billing`, granted one command of the target `discord-bot`."""

    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        platform = (await stack.enter_async_context(running_platform(folder))).platform
        self.url, self.endpoint = platform.http_url, platform.aws_endpoint_url
        self.root = Cloud(self.endpoint)
        self.admin = Gateway(self.url, platform.admin_token)
        self.acme = await Tenant.register("acme", self.root, self.admin, self.url)
        owner = await Tenant.register("discord", self.root, self.admin, self.url)
        self.source = await self.acme.add_service("billing")
        self.queue = await owner.make_queue("discord-notify")
        route = {"queue_arn": self.queue.arn, "dedupe_mode": "none", "expected_drain_seconds": 60}
        await owner.gateway.call("PUT", "/api/v1/routes/discord-bot/notify-user", route)
        await owner.gateway.call("PUT", "/api/v1/acls/acme/billing/discord-bot/notify-user", {})
        self.token = self.acme.gateway._token

    @property
    def sender(self) -> dict[str, str]:
        return self.acme.sender._keys

    def aws(self) -> AwsOptions:
        session = AioSession()
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        session.set_credentials(*(self.sender[name] for name in names))
        return AwsOptions(region="us-east-1", endpoint_url=self.endpoint, session=session)

    def environment(self, keys: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SNAVIO_"))}
        found = {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            **({"AWS_SESSION_TOKEN": keys["SessionToken"]} if "SessionToken" in keys else {}),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "SNAVIO_URL": self.url,
            "SNAVIO_TOKEN": self.token,
            "SNAVIO_SOURCE": self.source,
            "QUEUE_URL": self.queue.url,
        }
        return {**kept, **found}

    async def start(self, stack: AsyncExitStack, *command: str, keys: dict[str, str] | None = None):
        process = await asyncio.create_subprocess_exec(
            *command, env=self.environment(keys or self.sender), stdout=asyncio.subprocess.PIPE
        )

        async def end() -> None:
            if process.returncode is None:
                process.kill()
            await process.wait()

        stack.push_async_callback(end)
        return process


def block(folder: Path, name: str) -> str:
    """A program of the README, as a file."""
    path = folder / name
    path.write_text(re.search(rf"```python\n# {re.escape(name)}\n(.*?)```", README, re.DOTALL)[1])
    return str(path)


async def line_of(process) -> str:
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


async def test_the_readme_and_node_and_a_rotation_on_the_whole_platform(tmp_path):
    async with AsyncExitStack() as stack:
        world = World()
        await world.open(stack, tmp_path)
        root = {"AccessKeyId": "test", "SecretAccessKey": "test"}
        receive = await world.start(stack, sys.executable, block(tmp_path, "receive.py"), keys=root)

        for program in ("send.py", "send_plainly.py"):
            send = await world.start(stack, sys.executable, block(tmp_path, program))
            assert await send.wait() == 0
            assert await line_of(receive) == "to 42: Your invoice is paid."
        if shutil.which("node"):
            payload = '{"text": "Grüße aus Node 🚀", "user": 43}'
            node = await world.start(stack, "node", str(ROOT / "examples/node/send.mjs"), *PAIR, payload)
            assert await node.wait() == 0
            assert await line_of(receive) == "to 43: Grüße aus Node 🚀"

        ids = await stream_over_a_rotation(world)
        told = [await line_of(receive) for _ in ids]
        assert sorted(told) == sorted(f"to {n}: streamed" for n in range(len(ids)))
        receive.send_signal(signal.SIGTERM)
        assert await receive.wait() == 0

        delivered, invalid = await telemetry_of(world, set(ids))
        assert delivered >= set(ids)
        assert invalid == []


async def stream_over_a_rotation(world: World) -> list[str]:
    """Send while the key is rotated by the API; what the producer vouched for."""
    ids: list[str] = []
    async with Producer(world.url, world.token, source=world.source, aws=world.aws()) as producer:

        async def send(count: int) -> None:
            for _ in range(count):
                payload = {"user": len(ids), "text": "streamed"}
                ids.append("")
                ids[payload["user"]] = (await producer.send(*PAIR, payload)).id

        talkers = [asyncio.create_task(send(20)) for _ in range(3)]
        before = producer.key_version
        await world.admin.call("POST", "/api/v1/tenants/acme/services/billing/keys/rotate")
        await producer.refresh()
        assert producer.key_version != before
        # With the new key at once, long before any cache of the platform had to know it.
        await asyncio.gather(*talkers, send(20))
    return ids


async def telemetry_of(world: World, wanted: set[str]) -> tuple[set[str], list[CommandInvalid]]:
    """What telemetry says, until it has spoken of everything wanted."""
    delivered: set[str] = set()
    invalid: list[CommandInvalid] = []
    async with Telemetry(world.url, world.token, aws=world.aws()) as events, asyncio.timeout(90):
        async for event in events:
            if isinstance(event, CommandDelivered):
                delivered.add(event.command_id)
            elif isinstance(event, CommandInvalid):
                invalid.append(event)
            if delivered >= wanted:
                return delivered, invalid
    return delivered, invalid
