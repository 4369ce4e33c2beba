"""Reserving from a limit: exact under concurrency, charged once, never forgotten too soon."""

import anyio
import pytest

from snavio.aws.errors import ConditionFailed, Transient
from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.tables import MemoryTables
from snavio.dispatch.limit_store import LimitStore, limit_key
from snavio.domain.models import RateLimit


def store():
    clock = ManualClock()
    tables = MemoryTables(clock)
    tables.create("limits", key=("pk",))
    return LimitStore(tables, "limits", clock=clock), tables, clock


async def test_twenty_at_once_reserve_the_burst_and_not_one_more():
    limits, _, _ = store()
    granted: list[int] = []

    async def reserve(n):
        granted.append((await limits.reserve("t#go", RateLimit(50, 60), n % 7 + 1)).units)

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(reserve, n)
    assert sum(granted) == 50


async def test_what_is_left_is_given_and_the_rest_waits():
    limits, _, clock = store()
    limit = RateLimit(10, 10)
    assert (await limits.reserve("t#go", limit, 7)).units == 7
    second = await limits.reserve("t#go", limit, 7)
    assert (second.units, second.room) == (3, 0)
    third = await limits.reserve("t#go", limit, 1)
    assert third.units == 0
    assert 0 < third.retry_after_ms <= 1000
    clock.advance(third.retry_after_ms / 1000)
    assert (await limits.reserve("t#go", limit, 1)).units == 1


async def test_a_retry_after_a_lost_answer_is_charged_once():
    limits, tables, _ = store()
    limit = RateLimit(10, 60)
    await limits.reserve("t#go", limit, 1)
    update = tables.update
    lost = True

    async def losing(*args, **kwargs):
        nonlocal lost
        item = await update(*args, **kwargs)
        if lost:
            lost = False
            # The adapter tried again by itself after a time-out; the condition now finds our own mark.
            raise ConditionFailed("tried again", old=item)
        return item

    tables.update = losing
    assert (await limits.reserve("t#go", limit, 4)).units == 4
    assert (await limits.reserve("t#go", limit, 10)).units == 5


@pytest.mark.parametrize(
    "limit", [RateLimit(10, 86_400), RateLimit(1, 86_400, burst=500), RateLimit(1000, 1), RateLimit(5, 3600)]
)
async def test_a_counter_outlives_every_unit_it_handed_out(limit):
    limits, tables, clock = store()
    await limits.reserve("t#go", limit, limit.capacity)
    [item] = tables.tables["limits"].items.values()
    refilled = clock() + limit.capacity * limit.interval_seconds / limit.limit
    assert item["expires_at"] > refilled, "forgotten while the limit is still being used up"


async def test_a_counter_that_never_holds_still_is_said_to_be_busy():
    limits, tables, _ = store()

    async def contended(*args, **kwargs):
        raise ConditionFailed("changed", old=None)

    tables.update = contended
    with pytest.raises(Transient):
        await limits.reserve("t#go", RateLimit(10), 1)


async def test_only_so_many_prefetch_in_one_second():
    limits, _, clock = store()
    taken = [await limits.take_slot("t#go", 5) for _ in range(8)]
    assert taken == [True] * 5 + [False] * 3
    clock.advance(1)
    assert await limits.take_slot("t#go", 5)


def test_a_limit_that_changes_is_counted_anew():
    assert limit_key("t#go", RateLimit(10)) != limit_key("t#go", RateLimit(20))
    assert limit_key("t#go", RateLimit(10)) == limit_key("t#go", RateLimit(10, shadow=True))
