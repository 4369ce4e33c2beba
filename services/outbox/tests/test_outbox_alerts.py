"""Alerts from the outbox to channels, by a real worker on a real AWS, with webhooks that misbehave."""

import asyncio
import json
import urllib.request

import msgspec
import pytest
from aiohttp import web

from snavio.aws.boto.session import open_aws
from snavio.telemetry.alert_log import AlertLog
from snavio.telemetry.alert_store import AlertStore
from snavio.telemetry.alerts import signature
from snavio.telemetry.channels import AlertSettings, Dashboard, Email, Webhook
from snavio.telemetry.deliveries import DeliveryState
from snavio.wire.events import CommandInvalid, InvalidReason

pytestmark = pytest.mark.aws

INVALID = "snavio.command.invalid"
EVENTS = 5


@pytest.fixture
async def hooks():
    """Webhooks of three kinds of trouble and one that works; remembers every request by path."""
    seen = {}

    async def answer(request):
        seen.setdefault(request.path, []).append((dict(request.headers), await request.read()))
        match request.path:
            case "/hang":
                await asyncio.sleep(60)
            case "/redirect":
                raise web.HTTPFound(str(request.url.with_path("/inside")))
            case "/broken":
                return web.Response(status=500)
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", seen
    await runner.cleanup()


async def sent_mails(endpoint):
    def ask():
        with urllib.request.urlopen(f"{endpoint}/_ministack/ses/messages", timeout=10) as answer:
            return json.load(answer)

    by_account = (await asyncio.to_thread(ask))["messages"]
    return [mail for mails in by_account.values() for mail in mails]


async def test_channels_get_one_alert_a_burst_and_a_webhook_in_trouble_harms_nobody(
    bench, hooks, monkeypatch
):
    url, seen = hooks
    for name, value in bench.platform.environment().items():
        monkeypatch.setenv(name, value)
    choices = {
        "fine": (Dashboard(), Email(("ops@fine.test",)), Webhook(f"{url}/fine")),
        "hanging": (Webhook(f"{url}/hang"),),
        "broken": (Webhook(f"{url}/broken"),),
        "redirecting": (Webhook(f"{url}/redirect"),),
        "inside": (Webhook("https://169.254.169.254/latest/meta-data/"),),
        "unconcerned": (),
    }
    ses = await bench.client("sesv2")
    for identity in ("alerts@snavio.test", "ops@fine.test"):
        await ses.create_email_identity(EmailIdentity=identity)
    async with open_aws() as aws:
        store = AlertStore(aws.tables, aws.vault, bench.names, insecure_webhooks=True)
        log_book = AlertLog(aws.tables, bench.names.alerts)
        await asyncio.gather(*(bench.tenant(tenant) for tenant in choices))
        for tenant, channels in choices.items():
            await store.choose(tenant, AlertSettings({INVALID: channels}))
        bench.start(SNAVIO_OUTBOX_LEASE_SECONDS="30", SNAVIO_OUTBOX_MISSED_AFTER_SECONDS="60")
        events = [
            bench.event(
                tenant, CommandInvalid, reason=InvalidReason.HMAC_MISMATCH, detail="It does not match."
            )
            for tenant in choices
            for _ in range(EVENTS)
        ]
        await bench.write(events)

        arrived = {tenant: [] for tenant in choices}

        async def telemetry_complete():
            for tenant in choices:
                arrived[tenant] += await bench.received(tenant)
            return all(len(arrived[tenant]) >= EVENTS for tenant in choices)

        await bench.until(telemetry_complete)

        async def alerts_over():
            raised = {tenant: await log_book.raised(tenant) for tenant in choices}
            over = all(
                raised[tenant]
                and all(
                    delivery.state is not DeliveryState.PENDING for delivery in raised[tenant][0].deliveries
                )
                for tenant in choices
            )
            return raised if over else None

        raised = await bench.until(alerts_over, seconds=60, every=0.2)

        # The tenant whose channels work: one notice of the whole burst on each, with a signature it can check.
        (fine,) = raised["fine"]
        assert fine.on_dashboard
        assert fine.content.count == EVENTS
        ((headers, content),) = seen["/fine"]
        assert msgspec.json.decode(content)["sample"]["event"] == INVALID
        secret = await store.secret("fine")
        assert headers["X-Snavio-Signature"] == signature(secret, headers["X-Snavio-Timestamp"], content)
        (mail,) = [
            mail for mail in await sent_mails(bench.platform.endpoint_url) if mail["To"] == ["ops@fine.test"]
        ]
        assert mail["Subject"] == f"[Snavio] fine: {INVALID} about discord-bot, {EVENTS}"

        # The others: every attempt recorded, nothing followed inside, and operators asked to follow up.
        attempts = {
            tenant: [a.detail for d in raised[tenant][0].deliveries for a in d.attempts] for tenant in choices
        }
        assert attempts["hanging"] == ["no answer in time"] * 3
        assert attempts["broken"] == ["answered 500"] * 3
        assert attempts["redirecting"] == ["answered 302: redirects are not followed"]
        assert attempts["inside"] == ["the webhook leads to an address that is not public"]
        assert attempts["unconcerned"] == []
        assert "/inside" not in seen
        flags = {str(flag["tenant"]): flag["count"] for flag in await log_book.flags()}
        assert flags == dict.fromkeys(("hanging", "broken", "redirecting", "inside", "unconcerned"), EVENTS)
