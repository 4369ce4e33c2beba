"""Real workers on a real endpoint, killed in the middle of their work: every command is accounted for."""

import random
from collections import Counter

import anyio
import pytest
from live_platform import Fleet, batches, live

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(300)]

SOURCE, TARGET = "acme/billing", "discord-bot"
OUTCOMES = {"snavio.command.delivered", "snavio.command.failed"}


@pytest.fixture
def fleet(platform, tmp_path):
    with (tmp_path / "workers.log").open("w") as log:
        started = Fleet(platform, log)
        yield started
        started.stop()


async def test_no_limit_is_exceeded_and_no_command_lost_while_workers_are_killed(platform, fleet):
    """Eight fast and four slow workers hammer one limited pair; some of them are killed and replaced meanwhile."""
    roll = random.Random(1)
    limit, burst = 30, 30
    async with live(platform) as world:
        await world.service(SOURCE)
        queue = await world.route(
            TARGET, "go", SOURCE, rate_limit={"limit": limit, "interval_seconds": 1, "burst": burst}
        )
        fleet.start("shield")
        fleet.start("fast", 8)
        fleet.start("slow", 4)
        ids: set[str] = set()
        for number in range(6):
            ids |= set(await world.send([world.entry(SOURCE, TARGET, "go", {"n": n}) for n in range(40)]))
            fleet.kill_one(roll, "fast", "slow", "shield" if number % 3 == 0 else "fast")
        told = await world.until_told(ids, OUTCOMES)
        arrived = await world.drain(queue)
    assert fleet.killed == 6
    assert fleet.crashed() == []
    delivered = {message["metadata"]["id"] for message in arrived}
    assert delivered == {command_id for command_id in ids if "snavio.command.delivered" in told[command_id]}
    assert delivered
    moments = sorted(message["sent_at"] for message in arrived)
    for first, moment in enumerate(moments):
        for last in range(first, len(moments)):
            # A send may reach the queue later than it was decided: that much may bunch up at the far end.
            seconds = moments[last] - moment + 1.0
            assert last - first + 1 <= burst + limit * seconds


async def test_a_strict_command_sent_many_times_is_delivered_once_though_workers_die(platform, fleet):
    roll = random.Random(2)
    async with live(platform) as world:
        await world.service(SOURCE)
        queue = await world.route(TARGET, "pay", SOURCE, dedupe_mode="strict")
        fleet.start("shield")
        fleet.start("fast", 2)
        fleet.start("slow", 3)
        payments = [world.entry(SOURCE, TARGET, "pay", {"n": n}) for n in range(20)]
        copies = payments * 20
        roll.shuffle(copies)
        ids: set[str] = set()
        for batch in batches(copies, 100):
            ids |= set(await world.send(batch))
            fleet.kill_one(roll, "slow")
            fleet.kill_one(roll, "fast")
        await world.until_told(ids, {"snavio.command.delivered"})
        await anyio.sleep(3)
        arrived = await world.drain(queue)
    unmarked = Counter(m["metadata"]["id"] for m in arrived if not m["metadata"]["possible_duplicate"])
    assert {m["metadata"]["id"] for m in arrived} == ids
    assert all(count == 1 for count in unmarked.values()), "a repeat that is not marked"
    assert fleet.crashed() == []


async def test_workers_asked_to_stop_drain_and_leave_nothing_in_flight(platform, fleet):
    async with live(platform) as world:
        await world.service(SOURCE)
        queue = await world.route(TARGET, "go", SOURCE)
        for service in ("shield", "fast", "slow"):
            fleet.start(service)
        ids = set(await world.send([world.entry(SOURCE, TARGET, "go", {"n": n}) for n in range(200)]))
        await world.until_told(set(list(ids)[:1]), OUTCOMES)
        codes = [worker.terminate() for worker in fleet.workers]
        assert codes == [0, 0, 0]
        fleet.workers = []
        for service in ("shield", "fast", "slow"):
            fleet.start(service)
        await world.until_told(ids, {"snavio.command.delivered"})
        arrived = await world.drain(queue)
    assert {message["metadata"]["id"] for message in arrived} == ids
