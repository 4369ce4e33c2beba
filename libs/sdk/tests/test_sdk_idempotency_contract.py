"""One contract for every idempotency store."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiobotocore.session import AioSession

from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.dynamodb_idempotency import DynamoDbStore
from snavio.sdk.idempotency import Busy, Claimed, Finished, MemoryStore

REMEMBER = 600.0


class Clock:
    def __init__(self):
        self.now = 1_800_000_000.25

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", pytest.param("dynamodb", marks=pytest.mark.aws)])
async def store(request, clock):
    if request.param == "memory":
        yield MemoryStore(remember_seconds=REMEMBER, now=clock)
        return
    endpoint = request.getfixturevalue("aws_endpoint")
    session = AioSession()
    session.set_credentials("test", "test")
    async with AsyncExitStack() as stack:
        options = AwsOptions(region="us-east-1", endpoint_url=endpoint, session=session)
        client = await options.client(stack, "dynamodb")
        table = f"handled-{id(clock)}"
        await client.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        )
        yield DynamoDbStore(client, table, remember_seconds=REMEMBER, now=clock)
        await client.delete_table(TableName=table)


async def test_what_is_finished_is_finished_for_everyone_until_it_is_forgotten(store, clock):
    assert await store.claim("k", "one", 30) == Claimed(repeated=False)
    await store.finish("k", "one")
    assert await store.claim("k", "one", 30) == Finished()
    assert await store.claim("k", "two", 30) == Finished()
    clock.now += REMEMBER + 1
    assert await store.claim("k", "two", 30) == Claimed(repeated=False)


async def test_of_many_at_once_one_gets_the_claim(store):
    answers = await asyncio.gather(*(store.claim("k", f"owner-{n}", 30) for n in range(10)))
    assert answers.count(Claimed(repeated=False)) == 1
    assert sum(isinstance(answer, Busy) for answer in answers) == 9


async def test_the_busy_are_told_how_long(store, clock):
    await store.claim("k", "one", 30)
    clock.now += 10
    assert await store.claim("k", "two", 30) == Busy(pytest.approx(20, abs=0.01))
    await store.renew("k", "one", 30)
    clock.now += 25
    assert isinstance(await store.claim("k", "two", 30), Busy)


async def test_an_abandoned_claim_is_taken_over_and_marked_and_its_loser_has_no_say(store, clock):
    await store.claim("k", "one", 30)
    clock.now += 31
    assert await store.claim("k", "two", 30) == Claimed(repeated=True)
    await store.finish("k", "one")
    await store.release("k", "one")
    await store.renew("k", "one", 3000)
    assert isinstance(await store.claim("k", "three", 30), Busy)
    clock.now += 31
    assert await store.claim("k", "three", 30) == Claimed(repeated=True)


async def test_a_message_that_came_back_takes_over_its_own_claim(store):
    await store.claim("k", "one", 30)
    assert await store.claim("k", "one", 30) == Claimed(repeated=True)


async def test_a_released_claim_leaves_no_mark(store):
    await store.claim("k", "one", 30)
    await store.release("k", "one")
    assert await store.claim("k", "two", 30) == Claimed(repeated=False)


async def test_memory_is_bounded():
    store = MemoryStore(most=2)
    for key in ("a", "b", "c"):
        await store.claim(key, "one", 30)
        await store.finish(key, "one")
    assert await store.claim("a", "one", 30) == Claimed(repeated=False)
    assert await store.claim("c", "one", 30) == Finished()
