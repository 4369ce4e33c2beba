"""The fake on a clock that moves only when told: nothing waits for real."""

from __future__ import annotations

import anyio

from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.queues import MemoryQueues
from snavio.aws.values import Outgoing


async def test_a_long_poll_ends_when_the_clock_passes_its_wait():
    clock = ManualClock()
    queues = MemoryQueues(clock)
    queue = queues.create("q")
    answers = []

    async def poll():
        answers.append(await queues.receive(queue.url, wait_seconds=20))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poll)
        await anyio.wait_all_tasks_blocked()
        clock.advance(19)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        clock.advance(1)

    assert answers == [[]]


async def test_a_waiting_poll_gets_a_message_whose_visibility_ends():
    clock = ManualClock()
    queues = MemoryQueues(clock)
    queue = queues.create("q", visibility_seconds=5)
    await queues.send(queue.url, [Outgoing("x")])
    [first] = await queues.receive(queue.url)
    answers = []

    async def poll():
        answers.extend(await queues.receive(queue.url, wait_seconds=20))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poll)
        await anyio.wait_all_tasks_blocked()
        clock.advance(5)

    assert [(message.id, message.receive_count) for message in answers] == [(first.id, 2)]


async def test_a_message_no_longer_in_flight_cannot_be_hidden_but_can_be_deleted():
    clock = ManualClock()
    queues = MemoryQueues(clock)
    queue = queues.create("q", visibility_seconds=5)
    await queues.send(queue.url, [Outgoing("x")])
    [message] = await queues.receive(queue.url)
    assert [held.id for held in queue.in_flight(clock())] == [message.id]
    clock.advance(5)
    assert queue.in_flight(clock()) == []

    [fault] = await queues.set_visibility(queue.url, [(message.receipt, 5)])
    assert fault is not None
    assert fault.code == "MessageNotInflight"
    assert queue.bodies() == ["x"]
    assert await queues.delete(queue.url, [message.receipt]) == [None]
    assert queue.bodies() == []


async def test_a_waiting_poll_of_the_dead_letters_gets_what_is_buried():
    queues = MemoryQueues(ManualClock())
    dead = queues.create("dlq")
    queue = queues.create("q", max_receive_count=1, dead_letters=dead)
    await queues.send(queue.url, [Outgoing("poison")])
    await queues.receive(queue.url, visibility_seconds=0)
    answers = []

    async def poll():
        answers.extend(await queues.receive(dead.url))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poll)
        await anyio.wait_all_tasks_blocked()
        assert await queues.receive(queue.url, wait_seconds=0) == []

    assert [message.body for message in answers] == ["poison"]


async def test_two_runs_are_the_same():
    async def run():
        queues = MemoryQueues(ManualClock(0))
        queue = queues.create("q")
        await queues.send(queue.url, [Outgoing(str(n), delay_seconds=n % 3) for n in range(10)])
        return await queues.receive(queue.url, wait_seconds=0)

    assert await run() == await run()
