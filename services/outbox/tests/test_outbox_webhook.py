"""Webhooks that are slow, broken, greedy or lead where they must not."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp import web

from snavio.outbox.addresses import networks
from snavio.outbox.webhook import Webhooks
from snavio.telemetry.alerts import alert_of, body, signature
from snavio.telemetry.bursts import Burst, BurstKey
from snavio.telemetry.channels import Webhook
from snavio.telemetry.deliveries import GiveUp, Sent, TryAgain

LOCAL = networks(["127.0.0.1/32"])
ALERT = alert_of(
    Burst(
        key=BurstKey("acme", "snavio.command.invalid"),
        count=3,
        first_at=1.0,
        last_at=2.0,
        due_at=0.0,
        sample="{}",
    ),
    3,
    5.0,
)


async def the_secret(tenant):
    return b"secret of " + tenant.encode()


def webhooks(allowed=LOCAL, **settings):
    return Webhooks(the_secret, now=lambda: 1_795_000_000.5, allowed=allowed, **settings)


@pytest.fixture
async def server():
    """Answers by path, and remembers what was asked of it."""
    seen = []

    async def answer(request):
        seen.append((request.path, dict(request.headers), await request.read()))
        match request.path:
            case "/hang":
                await asyncio.sleep(60)
            case "/redirect":
                raise web.HTTPTemporaryRedirect(str(request.url.with_path("/inside")))
            case "/flood":
                response = web.StreamResponse()
                await response.prepare(request)
                while True:
                    await response.write(b"x" * 65536)
        return web.Response(status=int(request.path[1:]) if request.path[1:].isdigit() else 200)

    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}", seen
    await runner.cleanup()


async def test_a_webhook_gets_the_alert_with_a_signature_it_can_check(server):
    url, seen = server
    assert isinstance(await webhooks().send(ALERT, Webhook(f"{url}/ok")), Sent)
    ((_, headers, content),) = seen
    assert content == body(ALERT)
    assert headers["X-Snavio-Timestamp"] == "1795000000"
    assert headers["X-Snavio-Signature"] == signature(b"secret of acme", "1795000000", content)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/hang", TryAgain), ("/500", TryAgain), ("/404", GiveUp), ("/redirect", GiveUp), ("/flood", Sent)],
)
async def test_a_webhook_that_misbehaves_ends_with_a_result_in_time(server, path, kind):
    url, seen = server
    async with asyncio.timeout(20):
        assert isinstance(await webhooks(seconds=0.5).send(ALERT, Webhook(url + path)), kind)
    assert [asked for asked, _, _ in seen] == [path], "it was followed elsewhere"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1"])
async def test_a_webhook_that_leads_inside_is_never_connected_to(server, host):
    url, seen = server
    port = url.rpartition(":")[2]
    for scheme in ("http", "https"):
        result = await webhooks(allowed=()).send(ALERT, Webhook(f"{scheme}://{host}:{port}/secret"))
        assert isinstance(result, GiveUp), result
    assert seen == []


async def test_a_name_with_one_public_and_one_inner_address_is_refused_whole(server, monkeypatch):
    _, seen = server

    async def two_faced(self, host, port, **_):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("93.184.215.14", port)),
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("169.254.169.254", port)),
        ]

    monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", two_faced)
    result = await webhooks().send(ALERT, Webhook("https://two-faced.example/"))
    assert result == GiveUp("the webhook leads to an address that is not public")
    assert seen == []


async def test_plain_http_is_only_for_addresses_an_operator_allowed(monkeypatch):
    async def public(self, host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("93.184.215.14", port))]

    monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", public)
    result = await webhooks().send(ALERT, Webhook("http://hooks.example/"))
    assert result == GiveUp("a webhook's URL begins with https://")


async def test_nothing_listening_is_worth_another_try():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = await webhooks().send(ALERT, Webhook(f"http://127.0.0.1:{taken.getsockname()[1]}/"))
    assert isinstance(result, TryAgain)
