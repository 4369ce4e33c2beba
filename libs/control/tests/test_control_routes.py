from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from snavio.control.problems import Forbidden, Invalid, Missing
from snavio.control.routes import RouteSpec
from snavio.control.rules import BanSpec, GrantSpec, SettingsSpec
from snavio.control.tenants import ServiceSpec, TenantSpec
from snavio.domain.models import BanMode, DedupeMode, DispatchMode

QUEUE = "arn:aws:sqs:us-east-1:111111111111:bot"
OTHER = "arn:aws:sqs:us-east-1:111111111111:other"


@pytest.fixture
async def control(world, admin, acme, rival):
    control = world.control
    for tenant, principal in (("acme", acme), ("rival", rival)):
        await control.tenants.register(admin, TenantSpec(tenant=tenant))
        await control.tenants.register_service(principal, tenant, ServiceSpec(service="billing"))
    world.targets.add(QUEUE)
    world.targets.add(OTHER)
    return control


def spec(**changed: object) -> RouteSpec:
    return msgspec.structs.replace(RouteSpec(queue_arn=QUEUE), **changed)


async def test_versions_follow_each_other_and_the_same_route_is_no_change(control, acme):
    assert (await control.routes.put(acme, "bot", "ping", spec())).route.version == 1
    assert (await control.routes.put(acme, "bot", "ping", spec())).route.version == 1
    changed = await control.routes.put(acme, "bot", "ping", spec(dedupe_mode=DedupeMode.STRICT))
    assert changed.route.version == 2


async def test_a_target_belongs_to_whoever_came_first_also_in_a_race(world, control, admin, acme, rival):
    world.targets.add(QUEUE)
    outcomes = await asyncio.gather(
        world.restarted().routes.put(acme, "bot", "ping", spec()),
        world.restarted().routes.put(rival, "bot", "pong", spec(queue_arn=OTHER)),
        return_exceptions=True,
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, Forbidden)]
    assert len(refused) == 1
    owner = await control.directory.owner("bot")
    routes = await control.routes.list(admin)
    assert {route.tenant for route in routes} == {owner.tenant}


async def test_a_target_stays_its_owners_without_routes(control, acme, rival):
    await control.routes.put(acme, "bot", "ping", spec())
    await control.routes.delete(acme, "bot", "ping")
    with pytest.raises(Forbidden):
        await control.routes.put(rival, "bot", "ping", spec(queue_arn=OTHER))


async def test_an_administrator_says_whose_target_it_is(control, admin, acme):
    with pytest.raises(Invalid):
        await control.routes.put(admin, "bot", "ping", spec())
    report = await control.routes.put(admin, "bot", "ping", spec(tenant="acme"))
    assert report.route.tenant == "acme"
    assert await control.routes.get(acme, "bot", "ping") == report.route


async def test_a_dry_run_writes_nothing_and_asks_the_dispatchers_decisions(world, control, admin, acme):
    await control.routes.put(acme, "bot", "ping", spec())
    await control.rules.grant(acme, "acme/billing", "bot", "ping", GrantSpec())
    seq = await control.routes._store.last_seq()

    async def fast_and_slow(**changed: object) -> tuple[str, str]:
        report = await control.routes.put(acme, "bot", "ping", spec(**changed), dry_run=True)
        (trial,) = report.trials
        return trial.fast, trial.slow

    assert await fast_and_slow() == ("deliver", "deliver")
    assert await fast_and_slow(dedupe_mode=DedupeMode.STRICT) == ("dedupe_required", "deliver")
    report = await control.routes.put(acme, "bot", "new", spec(), dry_run=True)
    assert [(trial.fast, trial.slow) for trial in report.trials] == [("cache_miss", "acl-deny")]
    assert await control.routes._store.last_seq() == seq
    with pytest.raises(Missing):
        await control.routes.get(acme, "bot", "new")

    await control.rules.ban(admin, "acme/billing", BanSpec(mode=BanMode.COLD_ONLY))
    assert await fast_and_slow() == ("cold_only", "deliver")
    await control.rules.lift(admin, "acme/billing", None, None)
    await control.rules.change_settings(admin, SettingsSpec(dispatch_mode=DispatchMode.COLD_ONLY))
    assert await fast_and_slow() == ("cold_only", "deliver")


async def test_a_dry_run_claims_no_target(control, acme, rival):
    await control.routes.put(acme, "bot", "ping", spec(), dry_run=True)
    assert (await control.routes.put(rival, "bot", "ping", spec())).route.tenant == "rival"


async def test_all_failed_checks_are_named_together(world, control, acme):
    bare = "arn:aws:sqs:us-east-1:111111111111:bare"
    world.targets.queues[bare] = {}
    past = datetime.fromtimestamp(world.clock() - 1, UTC)
    wrong = RouteSpec(queue_arn=bare, schema={"type": "nonsense"}, expires_at=past)
    with pytest.raises(Invalid) as refused:
        await control.routes.put(acme, "bot", "ping", wrong)
    kinds = [fault.kind for fault in refused.value.faults]
    assert kinds == ["bad-schema", "bad-value", "queue-encrypted", "dlq-attached"]
    assert await control.directory.owner("bot") is None


async def test_a_route_may_be_registered_until_a_moment(world, control, acme):
    end = datetime.fromtimestamp(world.clock() + 60, UTC)
    await control.routes.put(acme, "bot", "ping", spec(expires_at=end))
    assert (await control.routes.get(acme, "bot", "ping")).expires_at == end.timestamp()


async def test_a_change_is_rolled_back_by_the_owner_through_the_same_checks(
    world, control, admin, acme, rival
):
    await control.routes.put(acme, "bot", "ping", spec())
    await control.routes.put(acme, "bot", "ping", spec(queue_arn=OTHER))
    change = (await control.history.latest(acme, limit=10, kind="route")).changes[-1]
    with pytest.raises(Missing):
        await control.history.roll_back(rival, change.seq)
    undone = await control.history.roll_back(acme, change.seq)
    assert undone.note == f"rolls back change {change.seq}"
    route = await control.routes.get(acme, "bot", "ping")
    assert (route.queue_arn, route.version) == (QUEUE, 3)

    await control.routes.put(acme, "bot", "ping", spec(queue_arn=OTHER))
    del world.targets.queues[QUEUE]
    again = (await control.history.latest(acme, limit=10, kind="route")).changes[-1]
    with pytest.raises(Invalid) as refused:
        await control.history.roll_back(acme, again.seq)
    assert [fault.kind for fault in refused.value.faults] == ["queue-exists"]


async def test_a_producer_cannot_restore_a_grant_its_target_took_back(control, acme, rival):
    await control.routes.put(acme, "bot", "ping", spec())
    await control.rules.grant(acme, "rival/billing", "bot", "ping", GrantSpec())
    await control.rules.revoke(acme, "rival/billing", "bot", "ping")
    revoked = (await control.history.latest(rival, limit=10, kind="grant")).changes[-1]
    with pytest.raises(Forbidden):
        await control.history.roll_back(rival, revoked.seq)
    await control.history.roll_back(acme, revoked.seq)
    assert len(await control.rules.grants(acme, "bot", "ping")) == 1


async def test_grants_need_a_source_and_a_route_that_exist(control, acme):
    await control.routes.put(acme, "bot", "ping", spec())
    with pytest.raises(Invalid) as refused:
        await control.rules.grant(acme, "acme/nobody", "bot", "pong", GrantSpec())
    assert [fault.kind for fault in refused.value.faults] == ["unknown-source", "unknown-route"]


async def test_pages_of_the_changelog_follow_each_other_without_gaps(control, admin, acme):
    for number in range(7):
        await control.routes.put(acme, "bot", f"c{number}", spec())
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = await control.history.changes(admin, after=after, limit=3)
        seen += [change.seq for change in page.changes]
        after = page.next_after
    assert seen == list(range(1, page.last + 1))
    latest = await control.history.latest(acme, limit=2, kind="route")
    assert [change.sk for change in latest.changes] == ["c5", "c6"]
