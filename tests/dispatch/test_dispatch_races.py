"""What the simulator found: promises that hold only if things that happen at once are told apart."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest
from dispatch_world import Crash, World

from snavio.aws.errors import Refused
from snavio.aws.values import Absent
from snavio.dispatch.notices import Notices
from snavio.domain.models import DedupeMode
from snavio.runtime.outcome import Done

SOURCE, TARGET, NAME = "acme/billing", "discord-bot", "notify-user"


async def ready(world: World, **route):
    await world.service(SOURCE)
    await world.route(TARGET, NAME, **route)
    await world.grant(SOURCE, TARGET, NAME)
    return await pipeline(world)


async def pipeline(world: World):
    return [await world.start(name) for name in ("shield", "fast", "slow")]


async def die_after(world: World, slow, *effects: str):
    """Let slow do exactly these effects and be gone."""
    world.tripwire.arm(len(effects) - 1, after=True)
    with pytest.raises((Crash, BaseExceptionGroup)):
        await world.pump(slow)
    assert world.tripwire.effects == list(effects)
    world.tripwire.disarm()


def marks_of(world: World, identity: str) -> list[bool]:
    messages = [message["metadata"] for message in world.delivered(TARGET, NAME)]
    return [message["possible_duplicate"] for message in messages if message["id"] == identity]


async def test_a_claim_that_was_taken_over_is_not_forgotten_when_its_command_is_refused():
    world = World()
    shield, fast, slow = await ready(world, dedupe_mode=DedupeMode.STRICT, rate_limit=(1, 100))
    identity = await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast)
    await die_after(world, slow, "tables.put", "tables.update", "tables.update", "queues.send")
    # It comes back, takes its own claim over, and finds the limit used up by what it had sent itself.
    await world.pump(await world.start("slow"), patience=40)
    assert [event.command_id for event in world.events("snavio.command.failed")] == [identity]
    world.clock.advance(100)
    again = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME, id=identity)
    await world.pump(*again, patience=40)
    assert marks_of(world, identity) == [False, True]


async def test_a_delivery_told_again_keeps_its_mark():
    world = World()
    shield, fast, slow = await ready(world, dedupe_mode=DedupeMode.STRICT)
    identity = await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast)
    await die_after(world, slow, "tables.put")
    world.clock.advance(31)
    slow = await world.start("slow")
    await die_after(
        world, slow, "tables.put", "tables.put", "queues.send", "tables.update", "tables.put_batch"
    )
    assert marks_of(world, identity) == [True]
    await world.pump(await world.start("slow"), patience=40)
    [event] = world.events("snavio.command.delivered")
    assert event.possible_duplicate is True


async def test_a_delivery_whose_claim_was_taken_over_meanwhile_is_told_as_a_possible_duplicate():
    world = World()
    shield, fast, slow = await ready(world, dedupe_mode=DedupeMode.STRICT)
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast)
    other = await world.start("slow")
    queue = world.queues.queues[slow.queue]
    [one] = await world.queues.receive(slow.queue, wait_seconds=0)
    send = world.queues.send

    async def overtaken(url, messages):
        # While it is being sent, the queue hands the same message to another worker, which takes the claim over.
        world.queues.send = send
        answers = await send(url, messages)
        queue.hide(queue.messages[one.id], world.clock())
        [twin] = await world.queues.receive(slow.queue, wait_seconds=0)
        await other.handle([twin])
        return answers

    world.queues.send = overtaken
    await slow.handle([one])
    [event] = world.events("snavio.command.delivered")
    assert event.possible_duplicate is True


async def test_a_claim_committed_while_it_was_being_taken_over_stays_committed():
    world = World()
    shield, fast, slow = await ready(world, dedupe_mode=DedupeMode.STRICT)
    identity = await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast)
    other = await world.start("slow")
    queue = world.queues.queues[slow.queue]
    [one] = await world.queues.receive(slow.queue, wait_seconds=0)
    queue.hide(queue.messages[one.id], world.clock())
    [twin] = await world.queues.receive(slow.queue, wait_seconds=0)
    put, handled = world.tables.put, []

    async def overtaken(table, item, *, condition=None):
        # The twin has found the claim open; before it takes it over, the message is delivered and the claim committed.
        if table == world.names.dedupe and not isinstance(condition, Absent):
            world.tables.put = put
            handled.extend(await committing)
        await put(table, item, condition=condition)

    sent = asyncio.Event()
    send = world.queues.send

    async def slowly(url, messages):
        world.queues.send = send
        sent.set()
        await asyncio.sleep(0)
        return await send(url, messages)

    world.queues.send = slowly
    committing = asyncio.create_task(slow.handle([one]))
    await sent.wait()
    world.tables.put = overtaken
    await other.handle([twin])
    assert handled == [Done()]
    assert marks_of(world, identity) == [False]
    [event] = world.events("snavio.command.delivered")
    assert event.possible_duplicate is not True


async def test_an_escalation_that_could_not_be_told_is_told_when_its_message_comes_back():
    world = World()
    shield, fast, slow = await ready(world, dedupe_mode=DedupeMode.STRICT)
    identity = await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield)
    put_batch = world.tables.put_batch

    async def refused_once(*_args):
        world.tables.put_batch = put_batch
        raise Refused("throttled")

    world.tables.put_batch = refused_once
    await world.pump(fast, patience=5)
    await world.pump(slow)
    assert [event.command_id for event in world.events("snavio.command.escalated")] == [identity]
    assert world.events("snavio.command.duplicate") == []


async def test_what_a_cancelled_flush_had_in_hand_goes_on_waiting():
    class Endless:
        async def write(self, _events):
            await asyncio.sleep(3600)

    notices = Notices(Endless(), on_lost=lambda _count: None)
    notices.add(["a ban"])
    with suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await notices.flush()
    assert len(notices) == 1


async def test_a_grant_whose_revocation_was_read_after_the_command_was_examined_is_not_used():
    world = World()
    shield, fast, slow = await ready(world, max_message_bytes=4200)
    await world.send(SOURCE, TARGET, NAME, {"fill": "x" * 200})
    await world.pump(shield, fast)
    put = world.objects.put

    async def revoked_meanwhile(*args, **kwargs):
        world.objects.put = put
        await world.revoke(SOURCE, TARGET, NAME)
        world.clock.advance(0.1)
        await slow.tick("refresh-registry")
        return await put(*args, **kwargs)

    world.objects.put = revoked_meanwhile
    await world.pump(slow, patience=5)
    assert world.delivered(TARGET, NAME) == []
    assert [event.reason for event in world.events("snavio.command.failed")] == ["acl-deny"]


async def test_a_draining_worker_tries_its_last_look_again():
    world = World()
    shield, fast, _ = await ready(world)
    identity = await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield)
    await world.revoke(SOURCE, TARGET, NAME)
    await world.step(fast)
    query, put_batch = world.tables.query, world.tables.put_batch

    async def refused_once(name, act, *args, **kwargs):
        setattr(world.tables, name, act)
        raise Refused("throttled")

    world.tables.query = partial(refused_once, "query", query)
    world.tables.put_batch = partial(refused_once, "put_batch", put_batch)
    flushes = dict(fast.worker.flushes)
    await flushes["registry"]()
    await flushes["notices"]()
    [event] = world.events("snavio.command.executed_after_acl_revoked")
    assert event.command_id == identity


async def test_an_old_key_about_to_end_is_told_as_both():
    world = World()
    await world.service(SOURCE, not_after=world.clock() + 3600)
    shield = await world.start("shield")
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield)
    assert len(world.events("snavio.secret.legacy_key_used")) == 1
    assert len(world.events("snavio.secret.key_expiry_imminent")) == 1
