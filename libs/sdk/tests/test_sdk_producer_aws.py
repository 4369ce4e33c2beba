"""The producer on the embedded AWS: real STS, IAM, EventBridge and SQS, with the platform's own screening behind."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest
from botocore.credentials import ReadOnlyCredentials

from snavio.domain.screening import Passed
from snavio.sdk.credentials import Assumed
from snavio.sdk.errors import ConfigError, SendError
from snavio.sdk.producer import Command, Producer, ProducerOptions
from snavio.sdk.sync import SyncProducer
from snavio.sdk.telemetry import Telemetry, reacting
from snavio.wire.events import LegacyKeyUsed, encode_event
from snavio.wire.times import format_time

pytestmark = pytest.mark.aws


def all_genuine(found):
    return {type(result) for results in found.values() for result in results} == {Passed}


async def test_what_is_sent_arrives_genuine_through_the_emit_role(stage):
    async with Producer(stage.url, stage.token, source=stage.source, aws=stage.aws()) as producer:
        sent = [await producer.send("discord-bot", "notify-user", {"größe": 1e3, "emoji": "🚀"})]
        many = [Command("discord-bot", "notify-user", {"n": n}) for n in range(25)]
        sent += await producer.send_many(many)
    found = await stage.arrived(26)
    assert set(found) == {one.id for one in sent}
    assert all_genuine(found)


async def test_the_bus_refuses_a_source_the_sender_may_not_use_and_the_error_says_so(stage):
    stage.registry.add_key("acme/mail", previous_ends_at=0)
    async with Producer(stage.url, stage.token, source="acme/mail", aws=stage.aws()) as producer:
        with pytest.raises(SendError, match="AccessDenied") as caught:
            await producer.send("discord-bot", "notify-user", {})
    assert not caught.value.uncertain


async def test_a_wrong_token_is_told_in_the_gateways_words(stage):
    with pytest.raises(ConfigError, match="401: The token is not valid"):
        async with Producer(stage.url, "wrong", aws=stage.aws()):
            pass


async def stream_through(stage, producer, meanwhile):
    """Send without a pause while something happens; the ids the producer vouched for."""
    stop = asyncio.Event()
    ids = []

    async def talk():
        while not stop.is_set():
            ids.append((await producer.send("discord-bot", "notify-user", {"n": len(ids)})).id)

    talkers = [asyncio.create_task(talk()) for _ in range(3)]
    try:
        await meanwhile(ids)
    finally:
        stop.set()
        await asyncio.gather(*talkers)
    return ids


async def test_a_key_rotation_in_mid_stream_loses_and_rejects_nothing(stage, eventually):
    versions = set()

    async def rotate(ids):
        await eventually(lambda: len(ids) > 50)
        versions.add(producer.key_version)
        # A short grace, so that a producer that went on with the old key would be refused within the test.
        stage.registry.add_key(stage.source, previous_ends_at=time.time() + 2)
        await producer.refresh()
        versions.add(producer.key_version)
        after = len(ids)
        await asyncio.sleep(2.1)  # the grace itself, not a wait for something to happen
        await eventually(lambda: len(ids) > after + 50)

    async with Producer(stage.url, stage.token, aws=stage.aws()) as producer:
        ids = await stream_through(stage, producer, rotate)
    found = await stage.arrived(len(ids))
    assert versions == {"hmac-v1", "hmac-v2"}
    assert set(found) == set(ids)
    assert all_genuine(found)


def short_lived(stage, sts, now, assumed):
    """What the producer does to assume its role, for two seconds instead of an hour: AWS allows no less than 900."""

    async def assume():
        asked_at = now()
        answer = await sts.assume_role(
            RoleArn=stage.emit_role_arn, RoleSessionName=f"billing-{stage.unique}", DurationSeconds=2
        )
        given = answer["Credentials"]
        assumed.append(given["AccessKeyId"])
        frozen = ReadOnlyCredentials(
            given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], None
        )
        return Assumed(given["AccessKeyId"], frozen, asked_at, asked_at + 2)

    return assume


@pytest.mark.parametrize("clock", ["in step", "stopped"])
async def test_credentials_that_end_in_mid_stream_lose_and_reject_nothing(stage, eventually, clock):
    """In step, they are renewed in time. With a clock that stands, the first word of their end is AWS's refusal."""
    started = time.time()
    assumed = []

    def clock_of_credentials():
        return time.time() if clock == "in step" else started

    async def outlive(ids):
        await eventually(lambda: len(assumed) >= 3)
        after = len(ids)
        await eventually(lambda: len(ids) > after + 20)

    async with AsyncExitStack() as stack:
        sts = await stage.aws().client(stack, "sts", parameter_validation=False)
        producer = await stack.enter_async_context(Producer(stage.url, stage.token, aws=stage.aws()))
        credentials = producer._sender._bus._credentials
        credentials._now = clock_of_credentials
        credentials._assume = short_lived(stage, sts, clock_of_credentials, assumed)
        ids = await stream_through(stage, producer, outlive)
    found = await stage.arrived(len(ids))
    assert len(set(assumed)) >= 3
    assert set(found) == set(ids)
    assert all_genuine(found)


async def test_the_sync_producer_sends_from_many_threads_and_closes_clean(stage):
    def work():
        with SyncProducer(stage.url, stage.token, source=stage.source, aws=stage.aws()) as producer:
            first = producer.send("discord-bot", "notify-user", {"n": 0})
            # Not awaited: closing must send them.
            futures = [producer.submit("discord-bot", "notify-user", {"n": n}) for n in range(1, 12)]
        return [first, *(future.result(0) for future in futures)]

    sent = await asyncio.to_thread(work)
    found = await stage.arrived(12)
    assert set(found) == {one.id for one in sent}
    assert all_genuine(found)


async def test_telemetry_rotates_a_key_long_before_the_next_poll(stage, eventually):
    options = ProducerOptions(refresh_gap_seconds=0.0)
    async with (
        Producer(stage.url, stage.token, aws=stage.aws(), options=options) as producer,
        Telemetry(stage.url, stage.token, aws=stage.aws()) as events,
    ):
        stage.registry.add_key(stage.source, previous_ends_at=time.time() + 3600)
        assert producer.key_version == "hmac-v1"
        event = LegacyKeyUsed(
            event_id="e-1",
            tenant="acme",
            emitted_at=format_time(time.time()),
            version_id="hmac-v1",
            source=stage.source,
        )
        await stage.sqs.send_message(QueueUrl=stage.telemetry_url, MessageBody=encode_event(event).decode())
        async for seen in reacting(events, producer):
            assert seen == event
            break
        await eventually(lambda: producer.key_version == "hmac-v2")
