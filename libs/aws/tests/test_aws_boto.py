"""What aiobotocore raises never leaves the adapters as it is."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from snavio.aws.boto.session import open_aws
from snavio.aws.errors import Permanent, Refused, Transient


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch):
    """Whatever the machine's own AWS variables and files say, these tests start from known ones."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@pytest.fixture
def free_port():
    """A port nobody listens on: bound, and never listened to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def test_an_endpoint_that_cannot_be_reached_has_not_acted(free_port):
    async with open_aws(endpoint_url=f"http://127.0.0.1:{free_port}") as aws:
        with pytest.raises(Refused):
            await aws.queues.receive("http://127.0.0.1/0/q", wait_seconds=0)
        with pytest.raises(Refused):
            await aws.objects.get("bucket", "key")


async def test_an_answer_cut_short_may_have_acted():
    async def hang_up(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_aws(endpoint_url=f"http://127.0.0.1:{port}") as aws:
        for call in (
            aws.queues.receive("http://127.0.0.1/0/q", wait_seconds=0),
            aws.objects.get("bucket", "key"),
        ):
            with pytest.raises(Transient) as fault:
                await call
            assert not isinstance(fault.value, Refused)


async def test_without_a_region_the_error_says_so(monkeypatch):
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(Permanent, match="region"):
        async with open_aws(endpoint_url="http://127.0.0.1:1"):
            pass


async def test_without_credentials_the_error_says_so(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with open_aws(endpoint_url="http://127.0.0.1:1") as aws:
        with pytest.raises(Permanent, match="credentials"):
            await aws.tables.get("table", {"pk": "a"})


async def test_the_standard_variables_are_heard(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    async with open_aws() as aws:
        assert aws.region == "eu-west-3"
        assert aws.queues.url_of("arn:aws:sqs:eu-west-3:1:q") == "http://127.0.0.1:9/1/q"
        assert await aws.client("sts") is await aws.client("sts")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    async with open_aws() as aws:
        assert aws.queues.url_of("arn:aws:sqs:eu-west-3:1:q") == "https://sqs.eu-west-3.amazonaws.com/1/q"
