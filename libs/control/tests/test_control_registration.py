"""Registration and its undoing, interrupted at every step."""

from __future__ import annotations

import asyncio

import pytest

from snavio.aws.errors import Transient
from snavio.control.models import State
from snavio.control.problems import Conflict, Forbidden, Invalid, Missing
from snavio.control.routes import RouteSpec
from snavio.control.rules import GrantSpec
from snavio.control.tenants import ServiceSpec, TenantChange, TenantSpec

SENDER = "arn:aws:iam::222222222222:role/Sender"
OTHER = "arn:aws:iam::222222222222:role/Other"
QUEUE = "arn:aws:sqs:us-east-1:111111111111:bot"


async def onboard(world, control, admin, acme):
    world.targets.add(QUEUE)
    await control.tenants.register(admin, TenantSpec(tenant="acme", sender_role_arns=(SENDER,)))
    key = await control.tenants.register_service(acme, "acme", ServiceSpec(service="billing"))
    await control.routes.put(acme, "bot", "ping", RouteSpec(queue_arn=QUEUE))
    await control.rules.grant(acme, "acme/billing", "bot", "ping", GrantSpec())
    return key


async def leave(control, admin):
    await control.offboarding.delete_tenant(admin, "acme")


async def interrupted_everywhere(make_world, crash, act, check, *, prepare=None):
    """Fail at each step in turn, before and after it acts; repeat on another gateway; check. Gives the steps seen."""
    seen = 0
    for after in (False, True):
        step = 0
        while True:
            world = make_world()
            if prepare:
                await prepare(world, world.control)
            world.steps.made, world.steps.fail_at, world.steps.after = 0, step, after
            try:
                await act(world, world.control)
                stopped = False
            except crash:
                stopped = True
            reached = world.steps.made > step
            world.steps.fail_at = None
            if stopped:
                await act(world, world.restarted())
            await check(world)
            if not reached:
                break
            step += 1
        seen = max(seen, step)
    return seen


async def test_a_registration_stopped_at_any_step_completes_when_repeated(make_world, crash, admin, acme):
    async def act(world, control):
        await onboard(world, control, admin, acme)

    async def check(world):
        control = world.control
        tenant = await control.directory.tenant("acme")
        assert tenant.state is State.ACTIVE
        assert tenant.applied == tenant.revision
        assert [each.state for each in await control.directory.services("acme")] == [State.ACTIVE]
        assert '"acme/billing"' in world.roles.roles["snavio-emit-acme"].policy
        assert world.pipelines.readers == {"acme": [SENDER]}
        (key,) = await control.keys.issued("acme/billing")
        assert key.version_id == "hmac-v1"
        assert (await control.directory.owner("bot")).tenant == "acme"
        assert [each.source for each in await control.rules.grants(admin, "bot", "ping")] == ["acme/billing"]

    assert await interrupted_everywhere(make_world, crash, act, check) >= 10


async def test_a_deletion_stopped_at_any_step_completes_when_repeated_and_leaves_nothing(
    make_world, crash, admin, acme
):
    async def prepare(world, control):
        await onboard(world, control, admin, acme)

    async def act(world, control):
        try:
            await leave(control, admin)
        except Missing:
            # The last answer was lost: it is done.
            return

    async def check(world):
        control = world.restarted()
        assert world.roles.roles == {}
        assert world.pipelines.readers == {}
        assert await control.directory.tenants() == []
        assert await control.directory.services("acme") == []
        assert await control.directory.targets() == []
        assert await control.routes.list(admin) == []
        registry = await control.routes._catalogue.current()
        assert not registry.knows_source("acme/billing")
        assert len(registry.grants) == 0

    assert await interrupted_everywhere(make_world, crash, act, check, prepare=prepare) >= 8


async def test_deleting_shuts_out_before_anything_else_can_fail(world, admin, acme):
    await onboard(world, world.control, admin, acme)

    async def broken(*_: object) -> None:
        raise Transient("SNS is down")

    world.pipelines.remove = broken
    with pytest.raises(Transient):
        await leave(world.control, admin)
    assert await world.control.keys.issued("acme/billing") == []
    assert "snavio-emit-acme" not in world.roles.roles
    with pytest.raises(Forbidden):
        await world.control.access.confirm(acme)


async def test_a_deleted_service_can_send_nothing_and_its_name_inherits_nothing(world, admin, acme):
    control = world.control
    first = await onboard(world, control, admin, acme)
    await control.offboarding.delete_service(acme, "acme", "billing")
    assert world.roles.roles["snavio-emit-acme"].policy is None
    assert await control.rules.grants(acme, "bot", "ping") == []
    again = await control.tenants.register_service(acme, "acme", ServiceSpec(service="billing"))
    assert again.secret != first.secret
    assert await control.rules.grants(acme, "bot", "ping") == []


async def test_services_registered_at_the_same_time_all_end_up_in_the_policy(world, admin, acme):
    control = world.control
    await control.tenants.register(admin, TenantSpec(tenant="acme", sender_role_arns=(SENDER,)))
    gateways = [world.restarted() for _ in range(4)]
    names = [f"service-{number}" for number in range(4)]
    await asyncio.gather(
        *(
            gateway.tenants.register_service(acme, "acme", ServiceSpec(service=name))
            for gateway, name in zip(gateways, names, strict=True)
        )
    )
    policy = world.roles.roles["snavio-emit-acme"].policy
    assert all(f"acme/{name}" in policy for name in names)


async def test_housekeeping_finishes_a_registration_nobody_repeats(world, crash, admin, acme):
    await world.control.tenants.register(admin, TenantSpec(tenant="acme", sender_role_arns=(SENDER,)))
    # Stop between the record of what is meant and everything that should follow from it.
    world.steps.made, world.steps.fail_at = 0, 1
    with pytest.raises(crash):
        await world.control.tenants.register_service(acme, "acme", ServiceSpec(service="billing"))
    world.steps.fail_at = None
    other = world.restarted()
    assert await other.tenants.unfinished() == ["acme"]
    await other.tenants.resume(admin, "acme")
    assert '"acme/billing"' in world.roles.roles["snavio-emit-acme"].policy
    assert len(await other.keys.issued("acme/billing")) == 1
    assert await other.tenants.unfinished() == []


async def test_changing_senders_takes_effect_in_the_role_and_for_readers(world, admin, acme):
    control = world.control
    await onboard(world, control, admin, acme)
    await control.tenants.change(admin, "acme", TenantChange(sender_role_arns=(OTHER,)))
    role = world.roles.roles["snavio-emit-acme"]
    assert OTHER in role.trust
    assert SENDER not in role.trust
    assert "*:Sender" not in role.policy
    assert world.pipelines.readers["acme"] == [OTHER]


async def test_the_same_name_with_other_particulars_is_a_conflict(world, admin, acme):
    control = world.control
    await onboard(world, control, admin, acme)
    with pytest.raises(Conflict, match="other particulars"):
        await control.tenants.register(admin, TenantSpec(tenant="acme"))
    with pytest.raises(Conflict, match="another sender role"):
        await control.tenants.register_service(
            acme, "acme", ServiceSpec(service="billing", sender_role_arn=OTHER)
        )


@pytest.mark.parametrize(
    ("tenant", "fault"),
    [
        ("x" * 53, "at most 52 characters"),
        ("acme-dlq", "may not end in -dlq"),
    ],
)
async def test_names_that_would_collide_or_not_fit_are_refused(world, admin, tenant, fault):
    with pytest.raises(Invalid) as refused:
        await world.control.tenants.register(admin, TenantSpec(tenant=tenant))
    assert fault in refused.value.faults[0].detail
    assert await world.control.directory.tenants() == []


async def test_every_change_is_audited_with_who_before_and_after(world, admin, acme):
    control = world.control
    await onboard(world, control, admin, acme)
    await leave(control, admin)
    records = await control.history.audit(admin, month=None, limit=500)
    actions = {record.action for record in records}
    assert {
        "tenant.register",
        "service.register",
        "target.claim",
        "tenant.delete",
        "target.release",
        "tenant.deleted",
    } <= actions
    # One record for each row changed: the tenant's revision rose too.
    (registered,) = (
        record
        for record in records
        if (record.action, record.subject) == ("service.register", "services#acme#billing")
    )
    assert registered.actor == "tenant:acme"
    assert registered.before is None
    assert '"service":"billing"' in registered.after


async def test_a_sender_that_iam_does_not_know_leaves_everything_as_it_was(world, admin, acme):
    ensure, unknown = world.roles.ensure, "arn:aws:iam::222222222222:role/Unknown"

    async def like_iam(name, documents, *, tenant):
        if unknown in documents.trust:
            raise Invalid("invalid-request", "No such role.", [])
        await ensure(name, documents, tenant=tenant)

    world.roles.ensure = like_iam
    control = world.control
    with pytest.raises(Invalid):
        await control.tenants.register(admin, TenantSpec(tenant="acme", sender_role_arns=(unknown,)))
    assert await control.directory.tenants() == []
    await onboard(world, control, admin, acme)
    with pytest.raises(Invalid):
        await control.tenants.register_service(
            acme, "acme", ServiceSpec(service="other", sender_role_arn=unknown)
        )
    with pytest.raises(Invalid):
        await control.tenants.change(admin, "acme", TenantChange(sender_role_arns=(unknown,)))
    assert await control.tenants.unfinished() == []
    assert [each.service for each in await control.directory.services("acme")] == ["billing"]
    assert SENDER in world.roles.roles["snavio-emit-acme"].trust
    await control.tenants.register_service(acme, "acme", ServiceSpec(service="other"))
    assert '"acme/other"' in world.roles.roles["snavio-emit-acme"].policy
