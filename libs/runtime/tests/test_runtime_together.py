from __future__ import annotations

import anyio
import pytest

from snavio.runtime.testing import virtual_time
from snavio.runtime.together import together


async def after(seconds: float, result: str) -> str:
    await anyio.sleep(seconds)
    return result


@virtual_time
async def test_results_come_in_the_order_asked_for_and_all_at_once():
    assert await together() == []
    assert await together(after(1, "a")) == ["a"]
    assert await together(after(3, "a"), after(1, "b"), after(2, "c")) == ["a", "b", "c"]
    assert anyio.current_time() == 4


@virtual_time
async def test_an_error_is_raised_once_the_others_are_over():
    ended = []

    async def fail() -> str:
        raise ZeroDivisionError

    async def last() -> str:
        await anyio.sleep(5)
        ended.append("last")
        return ""

    with pytest.raises(ZeroDivisionError):
        await together(fail(), last())
    assert ended == ["last"]


@virtual_time
async def test_cancelling_ends_all_of_them():
    ended = []

    async def endless(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(name)

    with anyio.move_on_after(1):
        await together(endless("a"), endless("b"))
    assert ended == ["a", "b"]
    assert anyio.current_time() == 1
