"""Telemetry as a stream of typed events, and what a producer makes of it."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from snavio.sdk.reactions import FetchKeys, Pause, reaction
from snavio.sdk.telemetry import TelemetryOptions, events_in, reacting
from snavio.sdk.testing.inbox import MemoryInbox
from snavio.wire.events import (
    CommandFailed,
    CommandName,
    FailedReason,
    KeyExpiryImminent,
    LegacyKeyUsed,
    SkewSample,
    WarmPathBan,
    encode_event,
)
from snavio.wire.times import format_time

UNTIL = 1_800_000_060.0
HEAD = {"event_id": "e", "tenant": "acme", "emitted_at": format_time(UNTIL - 60)}
SOURCE = "acme/billing"


def failed(**fields):
    about = {"command_id": "c", "source": SOURCE, "target": "bot", "command": CommandName("notify")}
    return CommandFailed(
        **HEAD,
        **{**about, "timestamp": "t", "reason": FailedReason.RATE_LIMIT_EXCEEDED, **fields},
    )


THROTTLED = failed(retry_after_ms=60_000, throttle_until=format_time(UNTIL))
BAN = WarmPathBan(
    **HEAD,
    source=SOURCE,
    target="bot",
    command=CommandName("notify"),
    source_share=0.9,
    competing_share=0.1,
    retry_after_ms=1,
    throttle_until=format_time(UNTIL),
)
SAMPLE = SkewSample(**HEAD, source=SOURCE, skew_seconds=0.1, sent_at="s", received_at="r")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (LegacyKeyUsed(**HEAD, version_id="hmac-v1", source=SOURCE), FetchKeys()),
        (KeyExpiryImminent(**HEAD, version_id="hmac-v1", source=SOURCE), FetchKeys()),
        # Late news of a key already replaced, or of somebody else's, is no reason to ask again.
        (LegacyKeyUsed(**HEAD, version_id="hmac-v0", source=SOURCE), None),
        (LegacyKeyUsed(**HEAD, version_id="hmac-v1", source="acme/mail"), None),
        (THROTTLED, Pause("bot", "notify", UNTIL)),
        (BAN, Pause("bot", "notify", UNTIL)),
        (failed(source="acme/mail", throttle_until=format_time(UNTIL)), None),
        (failed(reason=FailedReason.ACL_DENY), None),
        (failed(throttle_until="soon"), None),
        (SAMPLE, None),
    ],
)
def test_what_a_producer_should_do(event, expected):
    assert reaction(event, source=SOURCE, key_version="hmac-v1") == expected


def listening(*bodies):
    inbox = MemoryInbox()
    for body in bodies:
        inbox.send(body)
    return inbox, events_in(inbox, TelemetryOptions(wait_seconds=1))


async def test_an_event_is_gone_only_once_it_has_been_dealt_with():
    inbox, events = listening(*(encode_event(event).decode() for event in (THROTTLED, BAN, SAMPLE)))

    async def fail_at_the_second():
        async with aclosing(events):
            async for event in events:
                if event == BAN:
                    raise RuntimeError("cannot cope")

    with pytest.raises(RuntimeError):
        await fail_at_the_second()
    left = await inbox.receive(max_messages=10, wait_seconds=0, visibility_seconds=1)
    assert [message.body for message in left] == [encode_event(event).decode() for event in (BAN, SAMPLE)]


async def test_events_of_a_newer_platform_are_passed_over():
    inbox, events = listening('{"event": "snavio.not.yet.invented"}', "junk", encode_event(BAN).decode())
    async with aclosing(events):
        async for event in events:
            assert event == BAN
            break
    await inbox.hold(["message-3#1"], 0)
    left = await inbox.receive(max_messages=10, wait_seconds=0, visibility_seconds=1)
    assert [message.id for message in left] == ["message-3"]


class RecordingProducer:
    source = SOURCE
    key_version = "hmac-v1"

    def __init__(self):
        self.did = []

    def pause(self, *arguments):
        self.did.append(arguments)

    def refresh_soon(self):
        self.did.append("refresh")


async def test_reactions_happen_before_the_event_is_handed_on():
    _, events = listening(encode_event(THROTTLED).decode())
    producer = RecordingProducer()
    async with aclosing(reacting(events, producer)) as stream:
        async for _ in stream:
            assert producer.did == [("bot", "notify", UNTIL)]
            break
