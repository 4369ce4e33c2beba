"""What one tenant can do to another, tried with real credentials."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.aws


class Sender:
    """A tenant's own role, with every right its own account can give it."""

    def __init__(self, api: Any, role: str) -> None:
        self._api = api
        self.role = role

    def client(self, service: str, keys: dict[str, str] | None = None) -> Any:
        platform = self._api.platform
        keys = keys or platform.credentials(self.role, session_name="own-session")
        return platform.session.create_client(
            service,
            region_name=platform.names.region,
            endpoint_url=platform.endpoint_url,
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )

    async def assume_emit(self, tenant: str, session_name: str | None = None) -> dict[str, str]:
        async with self.client("sts") as sts:
            answer = await sts.assume_role(
                RoleArn=self._api.names.role_arn(self._api.names.emit_role(tenant)),
                RoleSessionName=session_name or self.role,
            )
        return answer["Credentials"]

    async def emit(self, tenant: str, source: str, session_name: str | None = None) -> int:
        keys = await self.assume_emit(tenant, session_name)
        async with self.client("events", keys) as events:
            answer = await events.put_events(
                Entries=[
                    {
                        "EventBusName": self._api.names.bus,
                        "Source": source,
                        "DetailType": "snavio.command-sent",
                        "Detail": "{}",
                    }
                ]
            )
        return answer["FailedEntryCount"]


async def denied(work: Any) -> None:
    with pytest.raises(ClientError) as refused:
        await work
    assert "AccessDenied" in refused.value.response["Error"]["Code"]


@pytest.fixture
async def two_tenants(api):
    """Two tenants, each with two senders; one of the first's services is bound to one of them."""
    names = ("acme-billing", "acme-mail", "rival-web")
    arns = {name: await api.sender(f"{api.names.prefix}-{name}") for name in names}
    billing, mail, web = arns.values()
    acme = await api.tenant("acme", sender_role_arns=[mail])
    rival = await api.tenant("rival", sender_role_arns=[web])
    await api.service(acme, "acme/billing", sender_role_arn=billing)
    await api.service(acme, "acme/mail")
    await api.service(rival, "rival/web")
    senders = [Sender(api, arn.rpartition("/")[2]) for arn in arns.values()]
    return acme, rival, senders


async def test_each_sender_emits_its_own_sources_and_no_others(api, two_tenants):
    _, _, (billing, mail, web) = two_tenants
    assert await billing.emit("acme", "acme/billing") == 0
    assert await mail.emit("acme", "acme/mail") == 0
    assert await web.emit("rival", "rival/web") == 0

    # Another tenant's role cannot be assumed, nor its source emitted through one's own.
    await denied(web.assume_emit("acme"))
    await denied(web.assume_emit("acme", session_name=billing.role))
    await denied(web.emit("rival", "acme/billing"))
    # Within a tenant, a bound source is its sender's alone, and no sender can take another's name.
    await denied(mail.emit("acme", "acme/billing"))
    await denied(billing.emit("acme", "acme/mail"))
    await denied(mail.assume_emit("acme", session_name=billing.role))
    # Without the emit role nobody puts anything on the bus.
    async with web.client("events") as events:
        entry = {"EventBusName": api.names.bus, "Source": "rival/web", "DetailType": "x", "Detail": "{}"}
        await denied(events.put_events(Entries=[entry]))


async def test_telemetry_is_read_by_its_tenant_alone(api, two_tenants):
    _, _, (billing, _, web) = two_tenants
    queue = api.platform.queue_url(api.names.telemetry("acme"))
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(billing.client("sqs"))
        other = await stack.enter_async_context(web.client("sqs"))
        await own.receive_message(QueueUrl=queue, WaitTimeSeconds=0)
        await denied(other.receive_message(QueueUrl=queue, WaitTimeSeconds=0))
        await denied(other.purge_queue(QueueUrl=queue))
        await denied(other.send_message(QueueUrl=queue, MessageBody="{}"))


async def test_the_api_keeps_tenants_apart(api, two_tenants):
    acme, rival, _ = two_tenants
    queue = await api.queue(f"{api.names.prefix}-bot")
    await acme.do("PUT", "/api/v1/routes/bot/ping", {"queue_arn": queue})
    await acme.do("PUT", "/api/v1/acls/acme/billing/bot/ping")

    config = json.dumps(await rival.do("GET", "/api/v1/tenant-config"))
    assert "acme" not in config
    other = await api.queue(f"{api.names.prefix}-other")
    for method, path, body in (
        ("PUT", "/api/v1/routes/bot/ping", {"queue_arn": other}),
        ("PUT", "/api/v1/routes/bot/other", {"queue_arn": other}),
        ("DELETE", "/api/v1/routes/bot/ping", None),
        ("PUT", "/api/v1/acls/rival/web/bot/ping", None),
        ("DELETE", "/api/v1/acls/acme/billing/bot/ping", None),
    ):
        await rival.refused(method, path, body, status=403, kind="not-your-target")
    for method, path, body in (
        ("POST", "/api/v1/tenants/acme/services", {"service": "spy"}),
        ("DELETE", "/api/v1/tenants/acme/services/billing", None),
        ("PUT", "/api/v1/tenants/acme/alerts", {"channels": {}}),
        ("POST", "/api/v1/tenants/acme/token", None),
        ("POST", "/api/v1/tenants/acme/services/billing/keys/rotate", None),
        ("PATCH", "/api/v1/tenants/rival", {"sender_role_arns": []}),
        ("PUT", "/api/v1/bans/acme/billing", {"mode": "outright"}),
        ("PUT", "/api/v1/settings", {"dispatch_mode": "cold-only"}),
        ("DELETE", "/api/v1/tenants/acme", None),
    ):
        await rival.refused(method, path, body, status=403, kind="forbidden")
    for path, kind in (
        ("/api/v1/tenants/acme", "unknown-tenant"),
        ("/api/v1/routes/bot/ping", "unknown-route"),
        ("/api/v1/routes/bot/ping/health", "unknown-route"),
        ("/api/v1/routes/bot/ping/acls", "unknown-target"),
        ("/api/v1/tenants/acme/services/billing/keys", "unknown-source"),
        ("/api/v1/tenants/acme/alerts", "unknown-tenant"),
    ):
        await rival.refused("GET", path, status=404, kind=kind)
    assert await rival.do("GET", "/api/v1/routes") == []
    seen = await rival.do("GET", "/api/v1/changelog")
    assert "acme" not in json.dumps(seen)
    grants = [
        each for each in (await acme.do("GET", "/api/v1/changelog"))["changes"] if each["kind"] == "grant"
    ]
    await rival.refused(
        "POST", f"/api/v1/changelog/{grants[0]['seq']}/rollback", status=404, kind="unknown-change"
    )
    # Nor may another's queue be written to by way of a route of one's own.
    problem = await rival.refused(
        "PUT", "/api/v1/routes/mine/ping", {"queue_arn": queue}, status=422, kind="route-refused"
    )
    assert [each["type"].rpartition(":")[2] for each in problem["problems"]] == ["queue-not-shared"]
