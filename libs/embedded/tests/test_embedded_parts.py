"""The small parts of the embedded platform, without processes."""

from __future__ import annotations

import asyncio
import base64
import hmac
import io
import json
from datetime import UTC, datetime, timedelta

import msgspec

from snavio.embedded.console import Console
from snavio.embedded.credentials import Credentials, CredentialsEndpoint
from snavio.embedded.environment import service_environment
from snavio.embedded.policy import read_entries
from snavio.embedded.tokens import admin_token, signing_secret
from snavio.wire.names import Names

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


class Lender:
    """Lends keys that last an hour, and counts."""

    def __init__(self):
        self.now = NOON
        self.lent = 0

    async def assume(self, role):
        self.lent += 1
        return Credentials(f"key-{self.lent}", "secret", "token", self.now + timedelta(hours=1), role)


async def test_credentials_are_renewed_before_an_sdk_would_refuse_them():
    lender = Lender()
    endpoint = CredentialsEndpoint(lender.assume, now=lambda: lender.now)
    token = endpoint.variables("p-shield")["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    keys = []
    for minutes in (0, 39, 2):
        lender.now += timedelta(minutes=minutes)
        keys.append((await endpoint.credentials("p-shield", token)).access_key_id)
    assert keys == ["key-1", "key-1", "key-2"]


async def test_a_service_gets_no_role_but_its_own():
    endpoint = CredentialsEndpoint(Lender().assume, now=lambda: NOON)
    async with endpoint.serving():
        own, other = endpoint.variables("p-shield"), endpoint.variables("p-gateway")
        assert await ask(own, own) == (200, "key-1")
        assert await ask(own, other) == (403, None)
        assert await ask(own, {"AWS_CONTAINER_AUTHORIZATION_TOKEN": ""}) == (403, None)


async def ask(address, identity):
    """As an SDK does: the URL of one service with the token of another."""
    host, _, path = address["AWS_CONTAINER_CREDENTIALS_FULL_URI"].removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    token = identity["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    writer.write(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nauthorization: {token}\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ")[1]), json.loads(body).get("AccessKeyId")


def test_the_admin_token_verifies_with_the_kept_secret(tmp_path):
    secret = signing_secret(tmp_path / "secret")
    assert signing_secret(tmp_path / "secret") == secret
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    signed, _, signature = admin_token(secret, now=1000).rpartition(".")
    expected = base64.urlsafe_b64encode(hmac.digest(secret, signed.encode(), "sha256")).rstrip(b"=").decode()
    assert signature == expected
    claims = json.loads(base64.urlsafe_b64decode(signed.partition(".")[2] + "=="))
    assert claims["roles"] == ["Admin"]
    assert claims["exp"] > claims["iat"] == 1000


def test_a_service_never_sees_the_identity_of_who_started_it():
    base = {"AWS_PROFILE": "mine", "AWS_SECRET_ACCESS_KEY": "mine", "PATH": "/bin", "NO_PROXY": "example.com"}
    found = service_environment(base, Names(prefix="p"), endpoint_url="http://e", own={"AWS_X": "role"})
    assert "mine" not in found.values()
    assert found["PATH"] == "/bin"
    assert found["NO_PROXY"] == "example.com,127.0.0.1,localhost"
    assert found["AWS_X"] == "role"


def test_log_lines_are_laid_out_for_people():
    out = io.StringIO()
    console = Console(out, colour=False)
    line = {
        "timestamp": "2026-11-18T06:30:00.123Z",
        "level": "error",
        "event": "it.broke",
        "worker": "w",
        "n": 1,
    }
    console.relay(
        "fast", msgspec.json.encode({**line, "why": "two words", "exception": "Trace\nback"}).decode()
    )
    console.relay("slow", "{not json")
    assert out.getvalue().splitlines() == [
        'fast     06:30:00.123 error   it.broke n=1 why="two words"',
        "fast         Trace",
        "fast         back",
        "slow     {not json",
    ]


def test_whatever_a_put_events_body_holds_its_entries_are_read_or_left_to_the_service():
    for body in (b"", b"[]", b"{", b'{"Entries": 1}', b'{"Entries": [1, null]}', b'{"Entries": {"a": 1}}'):
        assert read_entries(body) == ()
    entries = [
        {"Source": "a/b", "DetailType": "t"},
        {"Source": 1, "EventBusName": "x"},
        {"Source": "a/b", "DetailType": "t"},
    ]
    assert read_entries(json.dumps({"Entries": entries}).encode()) == (
        ("default", (("events:source", "a/b"), ("events:detail-type", "t"))),
        ("x", ()),
    )
