"""What every implementation of `Queues` does alike."""

from __future__ import annotations

import time

import anyio
import pytest

from snavio.aws.errors import NotFound, Permanent
from snavio.aws.ports import MAX_MESSAGE_BYTES
from snavio.aws.values import Outgoing

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _codes(outcome):
    return [None if fault is None else fault.code for fault in outcome]


async def _receive_all(queues, url, count):
    received = []
    while len(received) < count:
        batch = await queues.receive(url, wait_seconds=5)
        assert batch, f"only {len(received)} of {count} messages came"
        received += batch
    assert await queues.receive(url, wait_seconds=0) == []
    return received


async def test_a_message_arrives_as_it_was_sent(world):
    queue = await world.queue()
    body = "line\tone\r\ntwo ퟿�\U00010000\U0010ffff ünï 😀 \u0085\u200b"
    sent = Outgoing(body, group="acme", attributes={"snavio.id": "1", "traceparent": "ü"})
    assert await world.queues.send(queue.url, [sent]) == [None]

    [message] = await world.queues.receive(queue.url, wait_seconds=5)

    assert (message.body, message.group, message.attributes) == (body, "acme", sent.attributes)
    assert message.receive_count == 1
    # Seconds, not milliseconds, and the queue's clock is about ours.
    assert abs(message.sent_at - time.time()) < 3600


async def test_a_message_without_group_or_attributes_has_none(world):
    queue = await world.queue()
    await world.queues.send(queue.url, [Outgoing("plain")])
    [message] = await world.queues.receive(queue.url, wait_seconds=5)
    assert (message.group, message.attributes) == (None, {})


async def test_a_receive_waits_for_the_first_message(world):
    queue = await world.queue()
    received = []

    async def poll():
        received.extend(await world.queues.receive(queue.url, wait_seconds=10))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poll)
        await anyio.wait_all_tasks_blocked()
        await world.queues.send(queue.url, [Outgoing("late")])

    assert [message.body for message in received] == ["late"]


async def test_a_receive_takes_no_more_than_asked_for(world):
    queue = await world.queue()
    await world.queues.send(queue.url, [Outgoing(str(n)) for n in range(5)])
    assert len(await world.queues.receive(queue.url, max_messages=2, wait_seconds=1)) == 2
    assert len(await world.queues.receive(queue.url, wait_seconds=1)) == 3


async def test_an_empty_queue_gives_nothing(world):
    queue = await world.queue()
    assert await world.queues.receive(queue.url, wait_seconds=0) == []
    assert await world.queues.receive(queue.url, wait_seconds=1) == []


async def test_a_queue_that_is_not_there_is_not_found(world):
    queue = await world.queue()
    missing = queue.url + "-missing"
    for call in (
        world.queues.receive(missing, wait_seconds=0),
        world.queues.send(missing, [Outgoing("x")]),
        world.queues.delete(missing, ["x"]),
        world.queues.set_visibility(missing, [("x", 0)]),
    ):
        with pytest.raises(NotFound):
            await call


async def test_what_sqs_would_refuse_fails_alone(world):
    queue = await world.queue()
    messages = [
        Outgoing("first"),
        Outgoing("nul \x00"),
        Outgoing("not a character ￾"),
        Outgoing("half a pair \ud800"),
        Outgoing(""),
        Outgoing("x" * (MAX_MESSAGE_BYTES + 1)),
        Outgoing("x", attributes={f"a{n}": "1" for n in range(11)}),
        Outgoing("x", attributes={"AWS.reserved": "1"}),
        Outgoing("x", attributes={"bell": "\x07"}),
        Outgoing("last", attributes={f"a{n}": "1" for n in range(10)}),
    ]
    contents, parameter = "InvalidMessageContents", "InvalidParameterValue"

    outcome = await world.queues.send(queue.url, messages)

    assert _codes(outcome) == [
        None,
        contents,
        contents,
        contents,
        contents,
        parameter,
        parameter,
        parameter,
        contents,
        None,
    ]
    assert all(isinstance(fault, Permanent) for fault in outcome if fault is not None)
    assert {message.body for message in await _receive_all(world.queues, queue.url, 2)} == {"first", "last"}


@pytest.mark.parametrize("message", [Outgoing("x", delay_seconds=901), Outgoing("x", group="two words")])
async def test_a_delay_or_group_sqs_would_refuse_is_a_fault(world, message):
    queue = await world.queue()
    assert _codes(await world.queues.send(queue.url, [message])) == ["InvalidParameterValue"]


# aiohttp warns of any body over a mebibyte; it neither blocks nor splits it.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
async def test_attributes_count_towards_the_size_of_a_message(world):
    queue = await world.queue()
    attribute = {"name": "value"}
    room = MAX_MESSAGE_BYTES - len("name" + "String" + "value")
    whole, over = "ü" * (room // 2), "ü" * (room // 2) + "xx"
    outcome = await world.queues.send(
        queue.url, [Outgoing(whole, attributes=attribute), Outgoing(over, attributes=attribute)]
    )
    assert _codes(outcome) == [None, "InvalidParameterValue"]


async def test_messages_too_large_together_are_sent_all_the_same(world):
    queue = await world.queue()
    bodies = [str(n) * 400_000 for n in range(5)]
    assert await world.queues.send(queue.url, [Outgoing(body) for body in bodies]) == [None] * 5
    received = []
    while len(received) < 5:
        batch = await world.queues.receive(queue.url, wait_seconds=5)
        assert batch
        received += batch
    assert sorted(message.body for message in received) == bodies


async def test_a_batch_of_eleven_is_refused_whole(world):
    queue = await world.queue()
    for call in (
        world.queues.send(queue.url, [Outgoing("x")] * 11),
        world.queues.delete(queue.url, ["x"] * 11),
        world.queues.set_visibility(queue.url, [("x", 0)] * 11),
    ):
        with pytest.raises(Permanent) as refusal:
            await call
        assert refusal.value.code == "TooManyEntriesInBatchRequest"
    assert await world.queues.receive(queue.url, wait_seconds=0) == []


async def test_an_empty_batch_is_done_already(world):
    queue = await world.queue()
    assert await world.queues.send(queue.url, []) == []
    assert await world.queues.delete(queue.url, []) == []
    assert await world.queues.set_visibility(queue.url, []) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"max_messages": 0},
        {"max_messages": 11},
        {"wait_seconds": 21},
        {"wait_seconds": -1},
        {"visibility_seconds": 43_201},
    ],
    ids=str,
)
async def test_a_receive_beyond_the_limits_of_sqs_is_refused(world, asked):
    queue = await world.queue()
    with pytest.raises(Permanent) as refusal:
        await world.queues.receive(queue.url, **asked)
    assert refusal.value.code == "InvalidParameterValue"


async def test_a_deleted_message_is_gone_and_a_stale_receipt_fails_alone(world):
    queue = await world.queue()
    await world.queues.send(queue.url, [Outgoing("a"), Outgoing("b")])
    first, second = await _receive_all(world.queues, queue.url, 2)

    outcome = await world.queues.delete(queue.url, [first.receipt, "never-given-out", second.receipt])

    assert [outcome[0], outcome[2]] == [None, None]
    assert isinstance(outcome[1], Permanent)
    await world.queues.set_visibility(queue.url, [(first.receipt, 0), (second.receipt, 0)])
    assert await world.queues.receive(queue.url, wait_seconds=0) == []


async def test_a_message_handed_back_returns_at_once_as_the_same_message(world):
    queue = await world.queue(visibility_seconds=600)
    await world.queues.send(queue.url, [Outgoing("again")])
    [first] = await world.queues.receive(queue.url, wait_seconds=5)
    assert await world.queues.receive(queue.url, wait_seconds=0) == []

    assert await world.queues.set_visibility(queue.url, [(first.receipt, 0)]) == [None]
    [second] = await world.queues.receive(queue.url, wait_seconds=0)

    assert (second.id, second.body, second.receive_count) == (first.id, "again", 2)
    assert second.sent_at == first.sent_at
    assert second.receipt != first.receipt


async def test_a_receipt_is_stale_once_its_message_was_received_again(world):
    queue = await world.queue()
    await world.queues.send(queue.url, [Outgoing("x")])
    [first] = await world.queues.receive(queue.url, wait_seconds=5, visibility_seconds=0)
    [second] = await world.queues.receive(queue.url, wait_seconds=5)

    [deleting] = await world.queues.delete(queue.url, [first.receipt])
    [hiding] = await world.queues.set_visibility(queue.url, [(first.receipt, 0)])

    assert isinstance(deleting, Permanent)
    assert isinstance(hiding, Permanent)
    assert await world.queues.delete(queue.url, [second.receipt]) == [None]


async def test_a_message_returns_by_itself_when_its_visibility_ends(world):
    queue = await world.queue(visibility_seconds=1)
    await world.queues.send(queue.url, [Outgoing("x")])
    [first] = await world.queues.receive(queue.url, wait_seconds=5)
    [second] = await world.queues.receive(queue.url, wait_seconds=5)
    assert (second.id, second.receive_count) == (first.id, 2)


async def test_a_message_stays_hidden_while_its_visibility_is_extended(world):
    queue = await world.queue()
    await world.queues.send(queue.url, [Outgoing("x")])
    [message] = await world.queues.receive(queue.url, wait_seconds=5, visibility_seconds=1)
    outcome = await world.queues.set_visibility(queue.url, [(message.receipt, 60), (message.receipt, 43_201)])
    assert _codes(outcome) == [None, "InvalidParameterValue"]
    assert await world.queues.receive(queue.url, wait_seconds=2) == []


async def test_a_delayed_message_comes_later(world):
    queue = await world.queue()
    await world.queues.send(queue.url, [Outgoing("x", delay_seconds=1)])
    assert await world.queues.receive(queue.url, wait_seconds=0) == []
    assert len(await world.queues.receive(queue.url, wait_seconds=5)) == 1


async def test_a_message_received_in_vain_too_often_goes_to_the_dead_letters(world):
    queue = await world.queue(max_receive_count=2)
    await world.queues.send(queue.url, [Outgoing("poison", group="acme")])
    for count in (1, 2):
        [message] = await world.queues.receive(queue.url, wait_seconds=5)
        assert message.receive_count == count
        await world.queues.set_visibility(queue.url, [(message.receipt, 0)])

    assert await world.queues.receive(queue.url, wait_seconds=0) == []
    [dead] = await world.queues.receive(queue.dead_letters, wait_seconds=5)
    assert (dead.id, dead.body, dead.group) == (message.id, "poison", "acme")


async def test_many_receivers_share_out_the_messages(world):
    queue = await world.queue()
    for start in range(0, 50, 10):
        await world.queues.send(queue.url, [Outgoing(str(start + n)) for n in range(10)])
    received = []

    async def drain():
        while batch := await world.queues.receive(queue.url, max_messages=3, wait_seconds=1):
            received.extend(message.body for message in batch)
            assert await world.queues.delete(queue.url, [message.receipt for message in batch]) == [
                None
            ] * len(batch)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(drain)

    assert sorted(received, key=int) == [str(n) for n in range(50)]


async def test_the_url_of_a_queue_follows_from_its_arn(world):
    queue = await world.queue()
    await world.queues.send(world.queues.url_of(queue.arn), [Outgoing("x")])
    assert len(await world.queues.receive(queue.url, wait_seconds=5)) == 1


@pytest.mark.parametrize("arn", ["", "queue", "arn:aws:sns:eu-central-1:000000000000:topic"])
async def test_what_is_no_queue_has_no_url(world, arn):
    with pytest.raises(Permanent):
        world.queues.url_of(arn)
