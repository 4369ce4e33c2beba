"""Workers killed at random lose nothing, mix nothing up, and repeat little."""

import asyncio
import os
import random
import sys
from collections import Counter

import pytest

pytestmark = [pytest.mark.aws, pytest.mark.slow]

TENANTS = 50
EVENTS = int(os.environ.get("SNAVIO_TEST_OUTBOX_EVENTS", "2000"))
KILLS = max(4, EVENTS // 500)


@pytest.mark.timeout(60 + EVENTS // 10)
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

    async def produce():
        for start in range(0, EVENTS, 100):
            await bench.write(events[start : start + 100])

    async def kill_some():
        """Kill whoever is picked once there has been progress since the last time, so that each dies at work."""
        for _ in range(KILLS):
            before = EVENTS - await bench.rows_left()

            async def moved(before=before):
                return abs(EVENTS - await bench.rows_left() - before) > EVENTS // (KILLS * 3)

            await bench.until(moved, seconds=60, every=0.02)
            victim = chance.choice([worker for worker in bench.workers if worker.poll() is None])
            victim.kill()
            victim.wait(10)
            start()

    for _ in range(2):
        start()
    await asyncio.gather(produce(), kill_some())

    async def complete():
        await asyncio.gather(*(collect(tenant) for tenant in tenants))
        return all(set(arrived[tenant]) >= expected[tenant] for tenant in tenants)

    await bench.until(complete, seconds=40 + EVENTS // 20, every=0.2)
    assert {tenant: set(seen) for tenant, seen in arrived.items()} == expected
    repeats = sum(count - 1 for seen in arrived.values() for count in seen.values())
    # In the report of `pytest --junitxml`, and on the screen with `-s`.
    record_property("repeats", repeats)
    sys.stdout.write(f"\n{EVENTS} events, {KILLS} workers killed: {repeats} repeats\n")
    # A repeat is a row published by a worker that died before removing it: at most what was under way at each death.
    assert repeats <= KILLS * 2 * 10 * TENANTS
