"""The promises that must hold whatever dies: nothing lost, nothing forged, no limit exceeded."""

import itertools
import random
from typing import Any

import pytest
from dispatch_world import Crash, World

from snavio.domain.models import DedupeMode, RateLimit
from snavio.wire.times import format_time

SOURCE, TARGET, NAME = "acme/billing", "discord-bot", "notify-user"


async def ready(world: World, **route):
    await world.service(SOURCE)
    await world.route(TARGET, NAME, **route)
    await world.grant(SOURCE, TARGET, NAME)


ROUTES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"dedupe_mode": DedupeMode.STRICT},
    "limited": {"rate_limit": RateLimit(10, 1)},
    "strict-limited": {"dedupe_mode": DedupeMode.STRICT, "rate_limit": RateLimit(10, 1)},
    "large": {"max_message_bytes": 2048},
}


@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_worker_killed_at_any_effect_loses_no_command(kind, after):
    """Kill the worker at each of its effects in turn; another one finishes what it left."""
    for effect in itertools.count():
        world = World()
        await ready(world, **ROUTES[kind])
        ids = {
            await world.send(SOURCE, TARGET, NAME, {"n": n, "fill": "x" * 3000 if kind == "large" else ""})
            for n in range(3)
        }
        workers = [await world.start(name) for name in ("shield", "fast", "slow")]
        world.tripwire.arm(effect, after=after)
        crashed = await _pump_until_crash(world, workers)
        world.tripwire.disarm()
        replacements = [await world.start(name) for name in ("shield", "fast", "slow")]
        await world.pump(*replacements, patience=120)
        messages = world.delivered(TARGET, NAME)
        assert {message["metadata"]["id"] for message in messages} == ids, f"lost at effect {effect}"
        told = {event.command_id for event in world.events("snavio.command.delivered")}
        assert told == ids, f"untold at effect {effect}"
        if "strict" in kind:
            _assert_repeats_are_marked(messages)
        if not crashed:
            assert effect >= 3, "the tripwire was never reached"
            return


async def _pump_until_crash(world, workers):
    try:
        await world.pump(*workers)
    except Crash:
        return True
    except BaseExceptionGroup as group:
        assert group.split(Crash)[1] is None
        return True
    return False


def _assert_repeats_are_marked(messages):
    by_id: dict[str, list[bool]] = {}
    for message in messages:
        by_id.setdefault(message["metadata"]["id"], []).append(message["metadata"]["possible_duplicate"])
    for marks in by_id.values():
        assert marks.count(False) <= 1
        assert len(marks) <= 2


@pytest.mark.parametrize("seed", range(6))
async def test_no_limit_is_exceeded_in_any_window_while_workers_come_and_go(seed):
    """Eight fast and four slow workers on one pair, any of them replaced at any time with its leases lost."""
    roll = random.Random(seed)
    world = World()
    limit = RateLimit(roll.choice([5, 20, 50]), 1, burst=roll.choice([None, 3, 30]))
    await ready(world, rate_limit=limit)
    shield = await world.start("shield")
    fasts = [await world.start("fast") for _ in range(8)]
    slows = [await world.start("slow") for _ in range(4)]
    moments: list[float] = []
    for _ in range(120):
        for _ in range(roll.randrange(12)):
            await world.send(SOURCE, TARGET, NAME)
        while await world.step(shield):
            pass
        for worker in roll.sample(fasts, 3) + roll.sample(slows, 2):
            before = len(world.delivered(TARGET, NAME))
            await world.step(worker)
            moments += [world.clock()] * (len(world.delivered(TARGET, NAME)) - before)
            for task in worker.worker.tasks:
                if task.name == "replenish-leases":
                    await _replenish_once(task)
        if roll.random() < 0.2:
            fasts[roll.randrange(8)] = await world.start("fast")
            slows[roll.randrange(4)] = await world.start("slow")
        world.clock.advance(roll.choice([0.0, 0.01, 0.1, 0.3]))
        for worker in (shield, *fasts, *slows):
            await worker.tick("refresh-registry")
    assert moments
    for first, last in itertools.combinations(range(len(moments)), 2):
        seconds = moments[last] - moments[first]
        assert last - first + 1 <= limit.capacity + limit.per_second * seconds + 1e-4
    fast_share = sum(m["metadata"]["path"] == "fast" for m in world.delivered(TARGET, NAME))
    if limit.capacity >= 20:
        assert fast_share > 0, "leases were never used, so nothing was shown"


async def _replenish_once(task):
    """Let the background prefetch run one round."""
    book = task._work.__self__
    await book.prefetch_due()


async def test_fast_asks_nobody_on_the_path_of_a_message():
    """No read of DynamoDB, KMS or S3, and no write but the outbox record, for a hundred warm commands."""
    world = World()
    await ready(world)
    shield, fast = [await world.start(name) for name in ("shield", "fast")]
    for _ in range(100):
        await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield)
    calls: list[str] = []
    for port in (world.tables, world.objects, world.vault):
        for name in (
            "get",
            "put",
            "update",
            "delete",
            "transact",
            "put_batch",
            "query",
            "scan",
            "new_data_key",
            "open_data_key",
        ):
            if hasattr(port, name):
                _spy(port, name, calls)
    while await world.step(fast):
        pass
    assert len(world.delivered(TARGET, NAME)) == 100
    assert set(calls) == {"put_batch snavio-outbox"}
    assert len(calls) <= 10


def _spy(port, name, calls):
    method = getattr(port, name)

    def spied(table, *args, **kwargs):
        calls.append(f"{name} {table}")
        return method(table, *args, **kwargs)

    setattr(port, name, spied)


async def test_a_revoked_critical_grant_stops_within_five_seconds_and_what_slipped_through_is_reported():
    world = World()
    await ready(world, sensitivity="critical")
    workers = [await world.start(name) for name in ("shield", "fast", "slow")]
    revoked_at = None
    sent_after: list[str] = []
    for tick in range(100):
        if tick == 20:
            await world.revoke(SOURCE, TARGET, NAME)
            revoked_at = world.clock()
        command_id = await world.send(SOURCE, TARGET, NAME)
        if revoked_at is not None:
            sent_after.append(command_id)
        await world.pump(*workers)
        world.clock.advance(0.1)
        if tick % 30 == 29:  # refreshes are late, as on a struggling worker
            for worker in workers:
                await worker.tick("refresh-registry", "tidy", "record-notices")
    delivered = [m["metadata"] for m in world.delivered(TARGET, NAME)]
    slipped = {metadata["id"] for metadata in delivered} & set(sent_after)
    assert slipped, "nothing slipped through, so nothing was shown"
    assert all(
        metadata["dispatched_at"] <= _text(revoked_at + 5)
        for metadata in delivered
        if metadata["id"] in slipped
    )
    reported = world.events("snavio.command.executed_after_acl_revoked")
    assert {event.command_id for event in reported} == slipped
    assert all(event.acl_revocation_timestamp == _text(revoked_at) for event in reported)


def _text(seconds):
    return format_time(seconds)


async def test_a_redelivered_message_tells_the_same_event_and_not_another():
    world = World()
    await ready(world)
    workers = [await world.start(name) for name in ("shield", "fast", "slow")]
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(workers[0])
    [batch] = [await world.queues.receive(workers[1].queue, wait_seconds=0)]
    await workers[1].handle(batch)
    await workers[1].handle(batch)
    assert len(world.delivered(TARGET, NAME)) == 2, "at least once"
    assert len(world.events("snavio.command.delivered")) == 1, "one event id for one message"


async def test_telemetry_that_cannot_be_recorded_keeps_what_it_tells_of_in_its_queue():
    world = World()
    await ready(world)
    shield, fast = [await world.start(name) for name in ("shield", "fast")]
    await world.send(SOURCE, TARGET, NAME)
    await world.put("not json")
    table = world.tables.tables.pop(world.names.outbox)
    await world.step(shield)
    assert world.bodies(world.names.ingress) == ["not json"], (
        "of a command passed on there is nothing to tell yet"
    )
    await world.step(fast)
    assert len(world.bodies(world.names.fast)) == 1
    world.tables.tables[world.names.outbox] = table
    slow = await world.start("slow")
    await world.pump(shield, fast, slow, patience=60)
    assert world.bodies(world.names.ingress) == []
    assert world.bodies(world.names.fast) == []
    assert len(world.bodies(world.names.dlq(world.names.ingress))) == 1
    assert len(world.events("snavio.command.delivered")) == 1
