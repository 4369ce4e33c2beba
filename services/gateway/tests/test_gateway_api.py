from __future__ import annotations

import pytest

pytestmark = pytest.mark.aws


async def test_onboarding(api):
    sender = await api.sender("acme-billing")
    acme = await api.tenant("acme", contact_email="ops@acme.test", sender_role_arns=[sender])
    made = await api.service(acme, "acme/billing")
    assert made["source"] == "acme/billing"
    queue = await api.queue("bot")
    route = await acme.do("PUT", "/api/v1/routes/discord-bot/notify-user", {"queue_arn": queue})
    print(route)
    await acme.do("PUT", "/api/v1/acls/acme/billing/discord-bot/notify-user")
    print(await acme.do("GET", "/api/v1/tenant-config"))
    print((await api.nobody.ask("GET", "/schema")).text[:300])
