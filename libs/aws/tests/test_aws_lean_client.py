"""How the lean client uses its connections, against a server that misbehaves on demand."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import ssl
import uuid
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiobotocore.session import AioSession
from botocore.credentials import ReadOnlyCredentials
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from snavio.aws.boto.session import open_aws
from snavio.aws.errors import NotFound, Permanent, Refused, Transient
from snavio.aws.lean import pool
from snavio.aws.lean.calls import SQS, LeanCall

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers each request with the next script: bytes to write, then what to do with the connection."""

    def __init__(self, *scripts: tuple[bytes, str]) -> None:
        self.scripts = list(scripts)
        self.connections = 0
        self.requests = []
        self.closed = asyncio.Event()
        self.asked = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append((head, await reader.readexactly(length)))
                self.asked.set()
                answer, then = self.scripts.pop(0) if self.scripts else (OK, "keep")
                writer.write(answer)
                await writer.drain()
                if then == "close":
                    return
                if then == "hang":
                    await reader.read()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed.set()
            writer.close()


@asynccontextmanager
async def serving(*scripts, tls=None, trusted=None, timeout=5.0):
    server = Server(*scripts)
    listener = await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls)
    port = listener.sockets[0].getsockname()[1]
    call = LeanCall(
        msgspec.structs.replace(SQS, timeout=timeout),
        endpoint_url=f"{'https' if tls else 'http'}://127.0.0.1:{port}",
        region="eu-central-1",
        credentials=_keys,
        tls=trusted,
        connect_timeout=3,
    )
    async with listener:
        try:
            yield server, call
        finally:
            await call.aclose()


async def _keys():
    return ReadOnlyCredentials("access", "secret", None)


async def _call(call):
    return await call("SendMessageBatch", {"QueueUrl": "q", "Entries": []}, dict[str, Any])


async def test_a_connection_is_used_again():
    async with serving() as (server, call):
        for _ in range(3):
            assert await _call(call) == {}
        assert server.connections == 1
        assert server.requests[0][1] == b'{"QueueUrl":"q","Entries":[]}'
        assert b"x-amz-target:AmazonSQS.SendMessageBatch\r\n" in server.requests[0][0]


async def test_requests_at_once_have_a_connection_each_and_share_them_later():
    async with serving() as (server, call):
        await asyncio.gather(*(_call(call) for _ in range(5)))
        assert server.connections == 5
        await asyncio.gather(*(_call(call) for _ in range(5)))
        assert server.connections == 5


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", "close"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", "keep"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "close"),
        (OK + b"HTTP/1.1 200 OK\r\n", "keep"),
    ],
    ids=["announced", "announced-but-kept", "unannounced-length", "surplus-bytes"],
)
async def test_a_connection_said_to_close_or_spoilt_is_not_used_again(answer, then):
    async with serving((answer, then)) as (server, call):
        assert await _call(call) == {}
        assert await _call(call) == {}
        assert server.connections == 2


async def test_a_chunked_answer_leaves_its_connection_usable():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
    async with serving((chunked, "keep")) as (server, call):
        assert await _call(call) == {}
        assert await _call(call) == {}
        assert server.connections == 1


async def test_a_connection_the_server_closed_while_idle_is_noticed():
    async with serving((OK, "close")) as (server, call):
        await _call(call)
        await server.closed.wait()
        while call._pool._open:  # noqa: ASYNC110 - the event loop is what is waited for
            await asyncio.sleep(0)
        assert await _call(call) == {}
        assert server.connections == 2


async def test_a_connection_idle_for_long_is_not_trusted(monkeypatch):
    monkeypatch.setattr(pool, "IDLE_SECONDS", -1.0)
    async with serving() as (server, call):
        await _call(call)
        await _call(call)
        assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        (b"", "close"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{", "close"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]", "keep"),
        (b"gibberish\r\n\r\n", "hang"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "keep"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 13\r\n\r\n<html></html>", "keep"),
    ],
    ids=["nothing", "half", "no-json", "no-http", "500", "502"],
)
async def test_an_unclear_outcome_is_transient_and_never_said_not_to_have_acted(answer, then):
    async with serving((answer, then)) as (_, call):
        with pytest.raises(Transient) as fault:
            await _call(call)
        assert not isinstance(fault.value, Refused)
        assert await _call(call) == {}


async def test_an_error_of_aws_is_told_by_its_type_and_keeps_the_connection():
    body = b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}'
    answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with serving((answer, "keep")) as (server, call):
        with pytest.raises(NotFound, match="gone"):
            await _call(call)
        await _call(call)
        assert server.connections == 1


async def test_no_answer_in_time_is_transient_and_ends_the_connection():
    async with serving((b"HTTP/1.1 200 OK\r\n", "hang"), timeout=0.05) as (server, call):
        with pytest.raises(Transient, match="in time"):
            await _call(call)
        await server.closed.wait()


async def test_a_cancelled_request_ends_its_connection():
    async with serving((b"", "hang")) as (server, call):
        request = asyncio.create_task(_call(call))
        await server.asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await server.closed.wait()
        assert await _call(call) == {}
        assert server.connections == 2


async def test_closing_interrupts_what_is_under_way():
    async with serving((b"HTTP/1.1 200 OK\r\n\r\n{}", "hang")) as (server, call):
        request = asyncio.create_task(_call(call))
        await server.asked.wait()
        await call.aclose()
        # Half of a body that ends with its connection must not pass for the whole.
        with pytest.raises(Transient):
            await request
        with pytest.raises(Refused):
            await _call(call)


async def test_an_endpoint_that_cannot_be_reached_has_not_acted():
    async with serving() as (_, call):
        pass
    async with asyncio.timeout(5):
        with pytest.raises(Refused):
            await _call(call)


async def test_a_large_request_and_answer_pass():
    body = b'{"x":"' + b"y" * 3_000_000 + b'"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with serving((answer, "keep")) as (server, call):
        got = await call("SendMessageBatch", {"z": "z" * 2_000_000}, dict[str, str])
        assert len(got["x"]) == 3_000_000
        assert len(server.requests[0][1]) == 2_000_008


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "local")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


def _server_tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_tls_carries_requests_and_keeps_its_connection(certificate):
    trusted = ssl.create_default_context(cafile=certificate)
    async with serving(tls=_server_tls(certificate), trusted=trusted) as (server, call):
        assert await _call(call) == {}
        assert await _call(call) == {}
        assert server.connections == 1


async def test_a_cancelled_request_over_tls_ends_its_connection(certificate):
    trusted = ssl.create_default_context(cafile=certificate)
    async with serving((b"", "hang"), tls=_server_tls(certificate), trusted=trusted) as (server, call):
        request = asyncio.create_task(_call(call))
        await server.asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await server.closed.wait()


async def test_a_certificate_nobody_trusts_is_permanent(certificate):
    async with serving(tls=_server_tls(certificate), trusted=ssl.create_default_context()) as (_, call):
        with pytest.raises(Permanent) as fault:
            await _call(call)
        assert fault.value.code == "SSLError"


@pytest.mark.aws
async def test_a_role_is_known_by_its_signature_and_refused_without_it(aws_endpoint, aws_session):
    """The emulator checks the signatures of temporary keys, as AWS does."""
    name = f"lean-{uuid.uuid4().hex[:12]}"
    found = {"region": "eu-central-1", "endpoint_url": aws_endpoint}

    async def receive(secret):
        session: Any = AioSession()
        session.set_credentials(keys["AccessKeyId"], secret, keys["SessionToken"])
        async with open_aws(session=session, **found) as aws:
            return await aws.queues.receive(url, wait_seconds=0)

    async with open_aws(session=aws_session, **found) as aws:
        iam, sts, sqs = [await aws.client(service) for service in ("iam", "sts", "sqs")]
        url = (await sqs.create_queue(QueueName=name))["QueueUrl"]
        role = await iam.create_role(
            RoleName=name, AssumeRolePolicyDocument=_policy("sts:AssumeRole", Principal="*")
        )
        await iam.put_role_policy(
            RoleName=name, PolicyName="receive", PolicyDocument=_policy("sqs:ReceiveMessage", Resource="*")
        )
        answer = await sts.assume_role(RoleArn=role["Role"]["Arn"], RoleSessionName="test")
        keys = answer["Credentials"]

    assert await receive(keys["SecretAccessKey"]) == []
    with pytest.raises(Permanent):
        await receive("not-" + keys["SecretAccessKey"])


def _policy(action, **more):
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, **more}]})
