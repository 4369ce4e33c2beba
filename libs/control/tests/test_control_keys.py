from __future__ import annotations

import asyncio

import pytest

from snavio.control.keys import DAY
from snavio.control.problems import Conflict, Forbidden, Missing
from snavio.control.tenants import ServiceSpec, TenantSpec

SOURCE = "acme/billing"


@pytest.fixture
async def control(world, admin, acme):
    control = world.control
    await control.tenants.register(admin, TenantSpec(tenant="acme"))
    await control.tenants.register_service(acme, "acme", ServiceSpec(service="billing"))
    return control


async def versions(control):
    return [(key.version_id, key.current) for key in await control.keys.issued(SOURCE)]


async def test_the_previous_key_is_accepted_for_the_overlap_and_no_longer(world, control, admin):
    first = (await control.keys.issued(SOURCE))[0]
    newest, previous = await control.keys.rotate(admin, SOURCE)
    assert (newest.version_id, previous.version_id) == ("hmac-v2", "hmac-v1")
    assert newest.not_after is None
    assert previous.not_after == world.clock() + 7 * DAY
    assert await versions(control) == [("hmac-v1", False), ("hmac-v2", True)]
    assert (await control.keys.issued(SOURCE))[0].secret == first.secret
    world.clock.advance(7 * DAY)
    assert await versions(control) == [("hmac-v2", True)]


async def test_a_second_rotation_removes_the_version_before_the_previous(control, admin):
    for _ in range(10):
        await control.keys.rotate(admin, SOURCE)
    # Numbers, not text, put them in order.
    assert await versions(control) == [("hmac-v10", False), ("hmac-v11", True)]


async def test_a_rotation_stopped_half_way_is_finished_by_the_schedule(world, crash, control, admin):
    world.steps.made, world.steps.fail_at = 0, 1
    with pytest.raises(crash):
        await control.keys.rotate(admin, SOURCE)
    world.steps.fail_at = None
    assert await world.restarted().keys.rotate_due([SOURCE]) == []
    _, previous = reversed(await control.keys.versions(admin, SOURCE))
    assert previous.not_after is not None


async def test_keys_are_rotated_when_they_have_served_their_time_and_not_before(world, control):
    world.clock.advance(30 * DAY - 1)
    assert await control.keys.rotate_due([SOURCE]) == []
    world.clock.advance(1)
    assert await control.keys.rotate_due([SOURCE]) == [SOURCE]
    assert await control.keys.rotate_due([SOURCE]) == []


async def test_gateways_rotating_at_the_same_time_rotate_once(world, control):
    world.clock.advance(31 * DAY)
    gateways = [world.restarted() for _ in range(4)]
    rotated = await asyncio.gather(*(gateway.keys.rotate_due([SOURCE]) for gateway in gateways))
    assert sum(map(len, rotated)) == 1
    assert await versions(control) == [("hmac-v1", False), ("hmac-v2", True)]


async def test_a_repeated_request_to_rotate_rotates_once(control, admin):
    await control.keys.rotate(admin, SOURCE, expected="hmac-v1")
    with pytest.raises(Conflict):
        await control.keys.rotate(admin, SOURCE, expected="hmac-v1")


async def test_polls_are_recorded_sparingly_but_never_missed_after_a_rotation(world, control, admin, acme):
    store = world.control.keys._store

    async def polls():
        return [key.last_poll_at for key in await control.keys.versions(admin, SOURCE)]

    await control.config.fetch(acme)
    first = world.clock()
    assert await polls() == [first]
    before = await store.last_seq()
    world.clock.advance(60)
    await control.config.fetch(acme)
    assert await store.last_seq() == before
    await control.keys.rotate(admin, SOURCE)
    world.clock.advance(60)
    await control.config.fetch(acme)
    assert await polls() == [world.clock(), world.clock()]
    world.clock.advance(3600)
    await control.config.fetch(acme)
    assert await polls() == [world.clock(), world.clock()]


async def test_secrets_are_sealed_at_rest_and_masked_in_the_changelog(world, control, admin):
    secret = (await control.keys.issued(SOURCE))[0].secret
    for table in world.tables.tables.values():
        for item in table.items.values():
            assert secret not in repr(item).encode()
    page = await control.history.latest(admin, limit=100)
    assert {change.kind for change in page.changes} == {"key", "seal"}
    assert all("sealed" not in (change.after or "") for change in page.changes)


async def test_secrets_are_for_the_tenant_alone(control, admin, rival):
    with pytest.raises(Forbidden):
        await control.config.fetch(admin)
    assert await control.config.fetch(rival) == ("rival", [])
    with pytest.raises(Missing):
        await control.keys.versions(rival, SOURCE)
