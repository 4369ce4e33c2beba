"""The API of the contract, on a real platform, as its clients see it."""

from __future__ import annotations

import base64
import json

import pytest

from snavio.control.keys import DAY

pytestmark = pytest.mark.aws

ROUTE = "/api/v1/routes/discord-bot/notify-user"
GRANT = "/api/v1/acls/acme/billing/discord-bot/notify-user"


async def test_onboarding_as_the_contract_has_it(api):  # noqa: PLR0915 - the whole of the contract, in order
    names = api.names
    sender = await api.sender(f"{names.prefix}-sender")
    body = {"tenant": "acme", "contact_email": "ops@acme.test", "sender_role_arns": [sender]}
    made = await api.admin.do("POST", "/api/v1/tenants", body, status=201)
    token = made.pop("token")
    assert made == {
        "tenant": "acme",
        "emit_role_arn": names.role_arn(names.emit_role("acme")),
        "telemetry_topic_arn": names.topic_arn(names.telemetry("acme")),
        "telemetry_queue_url": api.platform.queue_url(names.telemetry("acme")),
    }
    # Repeating it changes nothing and gives the same answer.
    assert (await api.admin.do("POST", "/api/v1/tenants", body, status=201))["emit_role_arn"] == made[
        "emit_role_arn"
    ]
    acme = type(api.admin)(api.client, token, api.lines)

    service = await acme.do("POST", "/api/v1/tenants/acme/services", {"service": "billing"}, status=201)
    assert service["source"] == "acme/billing"
    assert service["key"]["version_id"] == "hmac-v1"
    assert len(base64.b64decode(service["key"]["secret_b64"])) == 32
    again = await acme.do("POST", "/api/v1/tenants/acme/services", {"service": "billing"}, status=201)
    assert again == service

    spec = {
        "queue_arn": await api.queue(f"{names.prefix}-bot"),
        "dedupe_mode": "strict",
        "expected_drain_seconds": 120,
        "sensitivity": "critical",
        "rate_limit": {"limit": 50, "interval_seconds": 1},
        "schema": {"type": "object"},
    }
    tried = await acme.do("PUT", f"{ROUTE}?dry_run=true", spec)
    assert (tried["dry_run"], tried["version"]) == (True, 1)
    assert await acme.do("GET", "/api/v1/routes") == []
    route = await acme.do("PUT", ROUTE, spec)
    assert {name: route[name] for name in spec} == {
        **spec,
        "rate_limit": {**spec["rate_limit"], "burst": 50, "shadow": False, "prefetchers": None},
    }
    assert (route["version"], route["tenant"]) == (1, "acme")
    assert all(check["passed"] for check in route["checks"])
    assert {
        name: value for name, value in route.items() if name not in {"dry_run", "checks", "test_routing"}
    } == (await acme.do("GET", ROUTE))

    await acme.do("PUT", GRANT, {"sensitivity": "low"})
    (grant,) = await acme.do("GET", f"{ROUTE}/acls")
    assert (grant["source"], grant["sensitivity"]) == ("acme/billing", "low")

    config = await acme.do("GET", "/api/v1/tenant-config")
    assert config == {
        "tenant": "acme",
        "services": [
            {"source": "acme/billing", "keys": [{**service["key"], "state": "current", "not_after": None}]}
        ],
        "bus": names.bus,
        "emit_role_arn": made["emit_role_arn"],
        "telemetry_queue_url": made["telemetry_queue_url"],
        "replay_window_seconds": 60.0,
        "poll_interval_seconds": 43_200.0,
    }

    health = await acme.do("GET", f"{ROUTE}/health")
    assert (health["status"], health["waiting"], health["dlq_waiting"]) == ("unknown", 0, 0)
    alerts = await acme.do("GET", "/api/v1/tenants/acme/alerts")
    assert alerts["channels"]["snavio.command.invalid"][1] == {"type": "email", "to": ["ops@acme.test"]}

    await api.admin.do("PUT", "/api/v1/quotas/acme/billing/discord-bot/notify-user", {"limit": 5})
    (quota,) = await acme.do("GET", "/api/v1/quotas/acme/billing")
    assert quota["rate_limit"]["limit"] == 5
    await api.admin.do("PUT", "/api/v1/bans/acme/billing", {"mode": "cold-only", "reason": "noisy"})
    (ban,) = await acme.do("GET", "/api/v1/bans")
    assert (ban["source"], ban["mode"], ban["until"]) == ("acme/billing", "cold-only", None)
    await api.admin.do("DELETE", "/api/v1/bans/acme/billing", status=204)
    assert await acme.do("GET", "/api/v1/bans") == []
    await api.admin.do("PUT", "/api/v1/settings", {"dispatch_mode": "cold-only"})
    assert await api.admin.do("GET", "/api/v1/settings") == {"dispatch_mode": "cold-only"}

    await acme.do("DELETE", GRANT, status=204)
    revoked = (await acme.do("GET", "/api/v1/changelog?kind=grant"))["changes"][-1]
    assert (revoked["actor"], revoked["after"]) == ("tenant:acme", None)
    assert revoked["before"]["source"] == "acme/billing"
    undone = await acme.do("POST", f"/api/v1/changelog/{revoked['seq']}/rollback")
    assert undone["note"] == f"rolls back change {revoked['seq']}"
    assert len(await acme.do("GET", f"{ROUTE}/acls")) == 1
    log = await api.admin.do("GET", "/api/v1/changelog")
    assert [each["seq"] for each in log["changes"]] == list(range(1, log["last"] + 1))
    assert service["key"]["secret_b64"] not in json.dumps(log)
    actions = [each["action"] for each in await api.admin.do("GET", "/api/v1/audit")]
    assert "tenant.register" in actions

    await acme.do("DELETE", ROUTE, status=204)
    await api.admin.do("DELETE", "/api/v1/tenants/acme", status=204)
    await acme.refused("GET", "/api/v1/tenant-config", status=403, kind="tenant-gone")
    async with api.platform.client("iam") as iam:
        with pytest.raises(iam.exceptions.NoSuchEntityException):
            await iam.get_role(RoleName=names.emit_role("acme"))
    # The same name, registered anew, is somebody else.
    await api.tenant("acme")
    await acme.refused("GET", "/api/v1/tenant-config", status=403, kind="tenant-gone")


async def test_rotation_with_overlap(api):
    acme = await api.tenant("acme")
    await api.service(acme, "acme/billing")
    rotate = "/api/v1/tenants/acme/services/billing/keys/rotate"
    rotated = await api.admin.do("POST", f"{rotate}?expected=hmac-v1")
    assert [(each["version_id"], each["state"]) for each in rotated["keys"]] == [
        ("hmac-v1", "previous"),
        ("hmac-v2", "current"),
    ]
    await api.admin.refused("POST", f"{rotate}?expected=hmac-v1", status=409, kind="rotated-already")
    (service,) = (await acme.do("GET", "/api/v1/tenant-config"))["services"]
    previous, current = service["keys"]
    assert previous["not_after"] is not None
    assert current["not_after"] is None
    assert previous["secret_b64"] != current["secret_b64"]
    polled = (await acme.do("GET", "/api/v1/tenants/acme/services/billing/keys"))["keys"]
    assert all(each["last_poll_at"] for each in polled)
    api.clock.ahead = 8 * DAY
    (service,) = (await acme.do("GET", "/api/v1/tenant-config"))["services"]
    assert [each["version_id"] for each in service["keys"]] == ["hmac-v2"]


async def test_every_refusal_names_its_kind_and_every_fault(api):
    admin, acme = api.admin, await api.tenant("acme")
    await api.service(acme, "acme/billing")

    # Who asks
    await api.nobody.refused("GET", "/api/v1/routes", status=401, kind="unauthenticated")
    await api.caller(roles=["Admin"], exp=1).refused(
        "GET", "/api/v1/routes", status=401, kind="unauthenticated"
    )
    await api.caller(roles=["Tenant"]).refused("GET", "/api/v1/routes", status=401, kind="unauthenticated")
    await api.caller(roles=[]).refused("GET", "/api/v1/routes", status=403, kind="forbidden")
    await api.caller(roles=["Tenant"], tenant="ghost").refused(
        "GET", "/api/v1/routes", status=403, kind="tenant-gone"
    )
    viewer = api.caller(roles=["Viewer"])
    await viewer.refused("POST", "/api/v1/tenants", {"tenant": "x"}, status=403, kind="forbidden")
    await viewer.refused("GET", "/api/v1/tenant-config", status=403, kind="forbidden")
    await api.caller(roles=["Viewer"], tenant="acme").refused(
        "GET", "/api/v1/tenant-config", status=403, kind="forbidden"
    )
    await viewer.do("GET", "/api/v1/changelog")
    # A tenant claim narrows an administrator too.
    await api.caller(roles=["Admin"], tenant="acme").refused(
        "POST", "/api/v1/tenants", {"tenant": "x"}, status=403, kind="forbidden"
    )

    # What is asked
    await admin.refused("GET", "/api/v1/nothing", status=404, kind="not-found")
    await admin.refused("PATCH", "/api/v1/routes", status=405, kind="method-not-allowed")
    for body in (b"{", b"", b"\xff", b"[" * 100_000):
        answer = await admin.ask("POST", "/api/v1/tenants", raw=body)
        assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) in {
            (400, "malformed-json"),
            (413, "request-entity-too-large"),
            (413, "content-too-large"),
        }
    answer = await admin.ask("POST", "/api/v1/tenants", raw=b" " * 100_000)
    assert answer.status_code == 413
    problem = await admin.refused(
        "POST",
        "/api/v1/tenants",
        {"tenant": "No!", "contact_email": "nobody", "sender_role_arns": ["x"], "colour": "red"},
        status=422,
        kind="invalid-request",
    )
    assert sorted(each["pointer"] for each in problem["problems"]) == [
        "/colour",
        "/contact_email",
        "/sender_role_arns/0",
        "/tenant",
    ]
    problem = await acme.refused(
        "PUT", "/api/v1/routes/Bad/ALSO", {"rate_limit": {"limit": 0}}, status=422, kind="invalid-request"
    )
    assert [each["pointer"] for each in problem["problems"]] == [
        "/target",
        "/command",
        "/queue_arn",
        "/rate_limit/limit",
    ]
    await admin.refused("GET", "/api/v1/changelog?limit=0", status=422, kind="invalid-request")
    await admin.refused("GET", "/api/v1/audit?month=x", status=422, kind="invalid-request")

    # What does not exist or stands in the way
    await admin.refused("GET", "/api/v1/tenants/ghost", status=404, kind="unknown-tenant")
    await admin.refused("DELETE", "/api/v1/tenants/ghost", status=404, kind="unknown-tenant")
    await admin.refused(
        "POST",
        "/api/v1/tenants",
        {"tenant": "acme", "contact_email": "a@b.c"},
        status=409,
        kind="tenant-exists",
    )
    await admin.refused("DELETE", "/api/v1/tenants/acme/services/ghost", status=404, kind="unknown-service")
    await admin.refused(
        "POST", "/api/v1/tenants/acme/services/ghost/keys/rotate", status=404, kind="unknown-source"
    )
    await acme.refused("GET", ROUTE, status=404, kind="unknown-route")
    await acme.refused("DELETE", ROUTE, status=404, kind="unknown-target")
    await acme.refused("PUT", GRANT, status=404, kind="unknown-target")
    await admin.refused("DELETE", "/api/v1/bans/acme/billing", status=404, kind="unknown-ban")
    await admin.refused("DELETE", "/api/v1/quotas/acme/billing/bot/ping", status=404, kind="unknown-quota")
    await admin.refused("POST", "/api/v1/changelog/9999/rollback", status=404, kind="unknown-change")
    seal = next(
        each for each in (await admin.do("GET", "/api/v1/changelog"))["changes"] if each["kind"] == "seal"
    )
    await admin.refused(
        "POST", f"/api/v1/changelog/{seal['seq']}/rollback", status=409, kind="not-reversible"
    )
    await acme.refused(
        "PUT",
        "/api/v1/tenants/acme/alerts",
        {"channels": {"snavio.command.failed": [{"type": "webhook", "url": "http://x"}]}},
        status=422,
        kind="invalid-request",
    )

    # What the queue lacks: every failed check of a real queue, in one answer
    prefix = api.names.prefix
    bare = await api.queue(f"{prefix}-bare", dlq=False, KmsMasterKeyId="")
    denied = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Deny",
                    "Principal": {"AWS": api.names.role_arn(api.names.role("slow"))},
                    "Action": "sqs:SendMessage",
                    "Resource": "*",
                }
            ],
        }
    )
    shut = await api.queue(f"{prefix}-shut", Policy=denied)
    fifo = await api.queue(f"{prefix}-fifo.fifo", dlq=False, FifoQueue="true")
    for queue, kinds in (
        (bare, ["queue-encrypted", "dlq-attached"]),
        (shut, ["slow-may-send"]),
        (fifo, ["queue-standard", "dlq-attached"]),
        (api.names.queue_arn("absent"), ["queue-exists"]),
        (api.names.queue_arn(api.names.fast), ["queue-arn"]),
    ):
        for path in (ROUTE, f"{ROUTE}?dry_run=true"):
            problem = await acme.refused("PUT", path, {"queue_arn": queue}, status=422, kind="route-refused")
            assert [each["type"].rpartition(":")[2] for each in problem["problems"]] == kinds
            assert problem["report"]["checks"]


async def test_the_schema_and_health_are_public_and_tell_the_whole_api(api):
    document = (await api.nobody.ask("GET", "/schema")).json()
    assert document["openapi"].startswith("3.")
    calls = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert {
        ("post", "/api/v1/tenants"),
        ("post", "/api/v1/tenants/{tenant}/services"),
        ("put", "/api/v1/routes/{target}/{command}"),
        ("get", "/api/v1/routes"),
        ("put", "/api/v1/acls/{tenant}/{service}/{target}/{command}"),
        ("delete", "/api/v1/acls/{tenant}/{service}/{target}/{command}"),
        ("put", "/api/v1/quotas/{tenant}/{service}/{target}/{command}"),
        ("put", "/api/v1/tenants/{tenant}/alerts"),
        ("get", "/api/v1/tenant-config"),
        ("post", "/api/v1/tenants/{tenant}/services/{service}/keys/rotate"),
        ("get", "/api/v1/changelog"),
        ("get", "/api/v1/routes/{target}/{command}/health"),
        ("get", "/api/v1/bans"),
    } <= calls
    for path in ("/healthz", "/readyz"):
        answer = await api.nobody.ask("GET", path)
        assert (answer.status_code, answer.json()["ok"]) == (200, True)


async def test_no_answer_may_be_kept_on_the_way(api):
    answer = await api.admin.ask("GET", "/api/v1/routes")
    assert answer.headers["cache-control"] == "no-store"
