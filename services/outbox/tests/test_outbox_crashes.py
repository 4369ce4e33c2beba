"""Workers killed at random lose nothing, mix nothing up, and repeat little."""

import asyncio
import os
import random
import sys
from collections import Counter

import pytest

from snavio.outbox.batching import MAX_ROWS
from snavio.outbox.lanes import LaneSettings

pytestmark = [pytest.mark.aws, pytest.mark.slow]

TENANTS = 50
EVENTS = int(os.environ.get("SNAVIO_TEST_OUTBOX_EVENTS", "2000"))
KILLS = max(4, EVENTS // 500)


@pytest.mark.timeout(120 + EVENTS // 10)
async def test_workers_killed_at_random_deliver_every_event_to_its_own_tenant(bench, record_property):
    chance = random.Random(20261118)
    tenants = [f"tenant-{number}" for number in range(TENANTS)]
    await asyncio.gather(*(bench.tenant(tenant) for tenant in tenants))
    events = [bench.event(chance.choice(tenants)) for _ in range(EVENTS)]
    expected = {tenant: {event.event_id for event in events if event.tenant == tenant} for tenant in tenants}
    arrived = {tenant: Counter() for tenant in tenants}

    def start():
        # Leases long enough for a busy machine: one that runs out in the hands of a live worker makes repeats.
        bench.start(SNAVIO_OUTBOX_LEASE_SECONDS="5", SNAVIO_OUTBOX_MISSED_AFTER_SECONDS="20")

    async def collect(tenant):
        while batch := await bench.received(tenant):
            assert {event.tenant for event in batch} == {tenant}
            arrived[tenant].update(event.event_id for event in batch)

    async def checkpoint():
        dynamodb = await bench.client("dynamodb")
        items = (await dynamodb.scan(TableName=bench.names.leases))["Items"]
        return [item.get("checkpoint") for item in items if item["pk"]["S"].startswith("stream#")]

    for _ in range(2):
        start()
    portion = -(-EVENTS // KILLS)
    for number in range(KILLS):
        before = await checkpoint()
        await bench.write(events[number * portion : (number + 1) * portion])

        async def at_work(before=before):
            return await checkpoint() != before

        await bench.until(at_work, seconds=60)
        await asyncio.sleep(chance.uniform(0, 0.3))
        victim = chance.choice([worker for worker in bench.workers if worker.poll() is None])
        victim.kill()
        victim.wait(10)
        start()

    async def complete():
        await asyncio.gather(*(collect(tenant) for tenant in tenants))
        return all(set(arrived[tenant]) >= expected[tenant] for tenant in tenants)

    await bench.until(complete, seconds=60 + EVENTS // 20, every=0.2)
    assert {tenant: set(seen) for tenant, seen in arrived.items()} == expected
    repeats = sum(count - 1 for seen in arrived.values() for count in seen.values())
    # In the report of `pytest --junitxml`, and on the screen with `-s`.
    record_property("repeats", repeats)
    sys.stdout.write(f"\n{EVENTS} events, {KILLS} workers killed: {repeats} repeats\n")
    # A repeat is a row published by a worker that died before removing it: no more than its slots hold at each death.
    # Twice that leaves room for a lease that ran out because the machine was busy.
    slots = LaneSettings()
    assert repeats <= KILLS * 2 * (slots.sends + slots.ailing_sends) * MAX_ROWS
