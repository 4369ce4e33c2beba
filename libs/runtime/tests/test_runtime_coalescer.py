from __future__ import annotations

import asyncio

import anyio
import pytest

from snavio.runtime.bell import Bell
from snavio.runtime.coalescer import Coalescer
from snavio.runtime.testing import virtual_time


@virtual_time
async def test_a_ring_meant_for_a_waiter_cancelled_in_the_same_moment_reaches_the_next():
    bell = Bell()
    woken = []

    async def wait(name: str) -> None:
        await bell.wait()
        woken.append(name)

    doomed, patient = asyncio.create_task(wait("doomed")), asyncio.create_task(wait("patient"))
    await anyio.sleep(1)
    bell.ring_one()
    doomed.cancel()
    await patient
    assert woken == ["patient"]


@virtual_time
async def test_a_waiter_that_gave_up_takes_no_ring():
    bell = Bell()
    with anyio.move_on_after(1):
        await bell.wait()
    async with anyio.create_task_group() as group:
        group.start_soon(bell.wait)
        await anyio.sleep(1)
        bell.ring_one()


@virtual_time
async def test_full_batches_go_at_once_and_the_rest_after_the_linger():
    acted: list[tuple[float, int]] = []

    async def act(batch: list[int]) -> None:
        acted.append((anyio.current_time(), len(batch)))

    subject = Coalescer(act, size=10, linger=0.5)
    async with anyio.create_task_group() as group:
        group.start_soon(subject.run)
        await anyio.sleep(1)
        subject.add(range(25))
        await anyio.sleep(1)
        subject.add(range(3))
        await anyio.sleep(0.25)
        subject.add(range(3))
        await anyio.sleep(1)
        group.cancel_scope.cancel()
    assert acted == [(1, 10), (1, 10), (1.5, 5), (2.5, 6)]


@virtual_time
async def test_no_more_batches_at_a_time_than_lanes():
    active = most = 0

    async def act(_batch: list[int]) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await anyio.sleep(1)
        active -= 1

    subject = Coalescer(act, lanes=3)
    async with anyio.create_task_group() as group:
        group.start_soon(subject.run)
        subject.add(range(100))
        await subject.flush()
        group.cancel_scope.cancel()
    assert (most, active) == (3, 0)


@virtual_time
async def test_flush_does_not_linger_and_waits_for_what_is_under_way():
    acted = []

    async def act(batch: list[int]) -> None:
        await anyio.sleep(2)
        acted.extend(batch)

    subject = Coalescer(act, linger=1000)
    async with anyio.create_task_group() as group:
        group.start_soon(subject.run)
        subject.add([1, 2, 3])
        await subject.flush()
        assert (acted, anyio.current_time()) == ([1, 2, 3], 2)
        group.cancel_scope.cancel()


@virtual_time
async def test_an_act_that_raises_ends_the_run():
    async def act(_batch: list[int]) -> None:
        raise RuntimeError("broken")

    subject = Coalescer(act)
    subject.add([1])
    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        await subject.run()
