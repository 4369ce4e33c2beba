"""What goes wrong below the adapters leaves them as an error of ours, whoever carries the call."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import socket

import pytest

from snavio.aws.boto.calls import BotoCall
from snavio.aws.boto.session import open_aws
from snavio.aws.errors import Permanent, Refused, Transient
from snavio.aws.lean.calls import LeanCall

carriers = pytest.mark.parametrize("lean", [False, True], ids=["boto", "lean"])


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


@carriers
async def test_an_endpoint_that_cannot_be_reached_has_not_acted(free_port, lean):
    async with open_aws(endpoint_url=f"http://127.0.0.1:{free_port}", lean=lean) as aws:
        with pytest.raises(Refused):
            await aws.queues.receive("http://127.0.0.1/0/q", wait_seconds=0)
        with pytest.raises(Refused):
            await aws.objects.get("bucket", "key")


@carriers
async def test_an_answer_cut_short_may_have_acted(lean):
    async def hang_up(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_aws(endpoint_url=f"http://127.0.0.1:{port}", lean=lean) as aws:
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


@carriers
async def test_without_credentials_the_error_says_so(monkeypatch, lean):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with open_aws(endpoint_url="http://127.0.0.1:1", lean=lean) as aws:
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


async def test_temporary_keys_are_renewed_before_they_end(monkeypatch):
    """ECS serves keys that end: every request is signed with those of its time."""
    served = []

    async def credentials(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        served.append(f"key-{len(served)}")
        # Already within the time in which they must be renewed, so the next request asks again.
        ends = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=5 if len(served) == 1 else 600)
        body = json.dumps(
            {
                "AccessKeyId": served[-1],
                "SecretAccessKey": "secret",
                "Token": "token",
                "Expiration": ends.isoformat(),
            }
        ).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        await writer.drain()
        writer.close()

    signed_by = []

    async def sqs(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        signed_by.append(head.decode().partition("Credential=")[2].partition("/")[0])
        assert b"x-amz-security-token:token\r\n" in head
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    keys_server = await asyncio.start_server(credentials, "127.0.0.1", 0)
    sqs_server = await asyncio.start_server(sqs, "127.0.0.1", 0)
    keys_port, sqs_port = (server.sockets[0].getsockname()[1] for server in (keys_server, sqs_server))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{keys_port}/keys")
    async with keys_server, sqs_server, open_aws(endpoint_url=f"http://127.0.0.1:{sqs_port}") as aws:
        for _ in range(3):
            await aws.queues.receive("queue", wait_seconds=0)

    assert signed_by[-1] == "key-1"
    assert served == ["key-0", "key-1"]


async def test_a_proxy_in_the_environment_is_left_to_aiobotocore(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    async with open_aws() as aws:
        assert isinstance(aws.queues._call._call, BotoCall)
    monkeypatch.setenv("NO_PROXY", "amazonaws.com")
    async with open_aws() as aws:
        assert isinstance(aws.queues._call._call, LeanCall)
