"""What every implementation of `Objects` and of `Vault` does alike."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from snavio.aws.errors import ConditionFailed, NotFound, Permanent

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_object_comes_back_as_it_was_put(world):
    bucket = await world.bucket()
    for body in (b"", b"\x00\xff" * 100_000):
        etag = await world.objects.put(bucket, "a/b c.json", body)
        found = await world.objects.get(bucket, "a/b c.json", max_bytes=len(body))
        assert (found.body, found.etag) == (body, etag)


async def test_an_absent_object_or_bucket_is_not_found(world):
    bucket = await world.bucket()
    for call in (
        world.objects.get(bucket, "nothing"),
        world.objects.get("contract-no-such-bucket", "k"),
        world.objects.put("contract-no-such-bucket", "k", b"x"),
        world.objects.put("contract-no-such-bucket", "k", b"x", if_match='"x"'),
    ):
        with pytest.raises(NotFound):
            await call


async def test_an_object_over_the_limit_is_refused(world):
    bucket = await world.bucket()
    await world.objects.put(bucket, "k", b"x" * 1001)
    with pytest.raises(Permanent) as refusal:
        await world.objects.get(bucket, "k", max_bytes=1000)
    assert refusal.value.code == "TooLarge"
    # The connection left in the middle of a body is not used again.
    assert len((await world.objects.get(bucket, "k")).body) == 1001


async def test_a_deleted_object_is_gone_and_deleting_it_again_is_no_error(world):
    bucket = await world.bucket()
    await world.objects.put(bucket, "k", b"x")
    await world.objects.delete(bucket, "k")
    with pytest.raises(NotFound):
        await world.objects.get(bucket, "k")
    await world.objects.delete(bucket, "k")


async def test_a_conditional_put_loses_to_whoever_was_first(world):
    bucket = await world.bucket()
    first = await world.objects.put(bucket, "k", b"1", if_absent=True)
    with pytest.raises(ConditionFailed):
        await world.objects.put(bucket, "k", b"other", if_absent=True)
    second = await world.objects.put(bucket, "k", b"2", if_match=first)
    with pytest.raises(ConditionFailed):
        await world.objects.put(bucket, "k", b"other", if_match=first)
    assert await world.objects.put(bucket, "k", b"3", if_match=second)
    assert (await world.objects.get(bucket, "k")).body == b"3"

    with pytest.raises(ConditionFailed):
        await world.objects.put(bucket, "gone", b"x", if_match=second)
    with pytest.raises(Permanent):
        await world.objects.put(bucket, "k", b"x", if_match=second, if_absent=True)


async def test_of_twenty_conditional_puts_one_is_first(world):
    bucket = await world.bucket()
    base = await world.objects.put(bucket, "k", b"base")
    won = []

    async def write(number):
        with suppress(ConditionFailed):
            won.append(await world.objects.put(bucket, "k", str(number).encode(), if_match=base))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(write, number)

    assert won == [(await world.objects.get(bucket, "k")).etag]


async def test_a_sealed_data_key_opens_in_its_context_alone(world):
    key = await world.key()
    context = {"tenant": "acme", "purpose": "hmac"}
    data_key = await world.vault.new_data_key(key, context=context)
    assert len(data_key.plaintext) == 32

    assert await world.vault.open_data_key(data_key.sealed, context=context) == data_key.plaintext
    for other in ({}, {"tenant": "acme"}, context | {"tenant": "evil"}):
        with pytest.raises(Permanent):
            await world.vault.open_data_key(data_key.sealed, context=other)
    with pytest.raises(Permanent):
        await world.vault.open_data_key(b"no seal at all", context=context)


async def test_every_data_key_is_fresh_and_needs_a_key_that_exists(world):
    key = await world.key()
    first = await world.vault.new_data_key(key, context={})
    second = await world.vault.new_data_key(key, context={})
    assert first.plaintext != second.plaintext
    with pytest.raises(NotFound):
        await world.vault.new_data_key("alias/contract-no-such-key", context={})
