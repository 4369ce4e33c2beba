"""The whole worker on real streams, topics and queues."""

import asyncio

import pytest

from snavio.wire.events import TelemetryDeliveryFailed
from snavio.wire.names import PLATFORM_TENANT

pytestmark = pytest.mark.aws


async def test_an_event_written_to_the_outbox_reaches_its_tenants_queue_and_leaves_the_table(bench):
    await bench.tenant("acme")
    bench.start()
    event = bench.event("acme")
    await bench.write([event])
    assert await bench.until(lambda: bench.received("acme")) == [event]

    async def gone():
        return await bench.rows_left() == 0

    await bench.until(gone)


async def test_a_deleted_topic_harms_its_tenant_alone_is_reported_and_mended_by_making_it_again(bench):
    names = bench.names
    tenants = ["gone", *(f"fine-{number}" for number in range(4))]
    for tenant in [*tenants, PLATFORM_TENANT]:
        await bench.tenant(tenant)
    sns = await bench.client("sns")
    await sns.delete_topic(TopicArn=names.topic_arn(names.telemetry("gone")))
    bench.start()
    await bench.write([bench.event(tenant) for _ in range(40) for tenant in tenants])
    arrived = {tenant: [] for tenant in [*tenants, PLATFORM_TENANT]}

    async def complete(*tenants):
        for tenant in tenants:
            arrived[tenant] += await bench.received(tenant)
        return all(len(arrived[tenant]) >= 40 for tenant in tenants)

    await bench.until(lambda: complete(*tenants[1:]))
    assert arrived["gone"] == []

    # Operators hear of it, by telemetry of their own.
    told = (await bench.until(lambda: bench.received(PLATFORM_TENANT)))[0]
    assert isinstance(told, TelemetryDeliveryFailed)
    assert (told.affected_tenant, told.reason) == ("gone", "NotFound")

    # Nothing was dropped: once the topic is back, the sweeper brings what was left.
    await bench.tenant("gone")
    await bench.until(lambda: complete("gone"), seconds=60)
    assert len({event.event_id for event in arrived["gone"]}) == 40


async def test_a_worker_told_to_stop_finishes_what_it_has_and_leaves_no_lease_behind(bench):
    await bench.tenant("acme")
    worker = bench.start(SNAVIO_OUTBOX_LEASE_SECONDS="60")
    await bench.write([bench.event("acme")])
    await bench.until(lambda: bench.received("acme"))
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, 30) == 0
    dynamodb = await bench.client("dynamodb")
    items = (await dynamodb.scan(TableName=bench.names.leases))["Items"]
    assert [item["owner"]["S"] for item in items if item["pk"]["S"].startswith("stream#")] == [""]
