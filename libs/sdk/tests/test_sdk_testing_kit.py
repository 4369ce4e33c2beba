"""The in-memory Snavio decides as the platform does, so a tenant's test that passes means something."""

from __future__ import annotations

import msgspec
import pytest

from snavio.domain.models import Ban, BanMode, Quota, RateLimit
from snavio.sdk.errors import ClosedError, RejectCommand
from snavio.sdk.intake import TargetOptions
from snavio.sdk.producer import Command, Producer
from snavio.sdk.sync import SyncProducer
from snavio.sdk.target import Target
from snavio.sdk.telemetry import reacting
from snavio.sdk.testing.snavio import InMemorySnavio
from snavio.wire.events import event_type

SOURCE, OTHER = "acme/billing", "acme/mail"
PAIR = ("bot", "notify")


class Clock:
    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def snavio(clock):
    made = InMemorySnavio(now=clock)
    made.register_service(SOURCE)
    made.register_route(*PAIR)
    made.grant(SOURCE, *PAIR)
    return made


def told(snavio, tenant="acme"):
    """Types and reasons of a tenant's events, without the samples of clocks."""
    events = [event for event in snavio.events(tenant) if "skew_sample" not in event_type(event)]
    return [
        (event_type(event).removeprefix("snavio."), str(getattr(event, "reason", ""))) for event in events
    ]


async def send(snavio, count=1, source=SOURCE, **fields):
    async with snavio.producer(source) as producer:
        return await producer.send_many([Command(*PAIR, {"n": n}, **fields) for n in range(count)])


async def test_a_command_reaches_its_handler_and_telemetry_says_so(snavio):
    seen = []
    app = Target("bot")

    @app.command("notify")
    async def handle(cmd: dict):
        seen.append(cmd)

    await send(snavio, 3)
    await snavio.run(app)
    assert sorted(cmd["n"] for cmd in seen) == [0, 1, 2]
    assert told(snavio) == [("command.delivered", "")] * 3
    assert [message.metadata.path for message in snavio.delivered("bot")] == ["fast"] * 3


async def test_what_a_target_gives_up_is_kept_with_the_reason(snavio):
    app = Target("bot", options=TargetOptions(retry_seconds=0))

    @app.command("notify")
    async def handle(cmd: dict):
        raise RejectCommand("no")

    await send(snavio)
    await snavio.run(app)
    assert [dead.reason for dead in snavio.dead("bot")] == ["no"]


async def test_without_a_grant_or_a_route_it_fails_with_the_platforms_reason(snavio):
    snavio.revoke(SOURCE, *PAIR)
    await send(snavio)
    snavio.registry.routes.clear()
    await send(snavio)
    assert [event for event in told(snavio) if event[0] == "command.failed"] == [
        ("command.failed", "acl-deny"),
        ("command.failed", "route-missing"),
    ]


async def test_a_limit_holds_and_its_hints_are_right(snavio, clock):
    snavio.register_route(*PAIR, rate_limit={"limit": 2, "interval_seconds": 10, "burst": 2})
    await send(snavio, 3)
    assert len(snavio.delivered("bot")) == 2
    failed = snavio.events("acme")[-1]
    assert failed.reason == "rate-limit-exceeded"
    clock.now += failed.retry_after_ms / 1000
    await send(snavio)
    assert len(snavio.delivered("bot")) == 3


async def test_a_producer_that_reacts_to_telemetry_holds_back_what_is_throttled(snavio, clock):
    snavio.register_route(*PAIR, rate_limit={"limit": 1, "interval_seconds": 10})
    async with snavio.producer(SOURCE) as producer:
        await producer.send_many([Command(*PAIR, n) for n in range(2)])
        async for event in reacting(snavio.telemetry("acme"), producer):
            if event_type(event) == "snavio.command.failed":
                break
        assert producer._throttles.until(*PAIR, clock()) == pytest.approx(clock() + 10, abs=1)


async def test_a_limit_in_shadow_mode_only_tells(snavio):
    snavio.register_route(*PAIR, rate_limit={"limit": 1, "interval_seconds": 60, "shadow": True})
    await send(snavio, 2)
    assert len(snavio.delivered("bot")) == 2
    assert ("command.over_limit", "") in told(snavio)


async def test_a_strict_command_is_delivered_once(snavio, clock):
    snavio.register_route(*PAIR, dedupe_mode="strict")
    same = "0f8fad5b-d9cb-469f-a165-70867728950e"
    await send(snavio, 2, id=same)
    assert len(snavio.delivered("bot")) == 1
    assert told(snavio)[-1] == ("command.duplicate", "")
    clock.now += 301
    await send(snavio, id=same)
    assert len(snavio.delivered("bot")) == 2


async def test_keys_rotate_and_the_old_one_ends(snavio, clock):
    async with snavio.producer(SOURCE) as producer:
        snavio.rotate_key(SOURCE, grace_seconds=60)
        await producer.send(*PAIR, {})
        assert ("secret.key_expiry_imminent", "") in told(snavio)
        await producer.refresh()
        clock.now += 61
        await producer.send(*PAIR, {})
    assert len(snavio.delivered("bot")) == 2


async def test_a_key_that_ended_is_refused(snavio, clock):
    async with snavio.producer(SOURCE) as producer:
        snavio.rotate_key(SOURCE, grace_seconds=60)
        clock.now += 61
        await producer.send(*PAIR, {})  # this producer has not heard of the rotation
    assert told(snavio)[-1] == ("command.invalid", "hmac-expired-key")


async def test_a_ban_and_a_quota_are_enforced(snavio):
    snavio.ban(Ban(source=SOURCE, mode=BanMode.WARM))
    quota = RateLimit(1, 60)
    snavio.set_quota(Quota(source=SOURCE, target=PAIR[0], command=PAIR[1], rate_limit=quota))
    await send(snavio, 2)
    assert [m.metadata.path for m in snavio.delivered("bot")] == ["slow"]
    assert snavio.events("acme")[-1].sub_reason == "source-quota"
    snavio.ban(Ban(source=SOURCE, mode=BanMode.OUTRIGHT))
    await send(snavio)
    assert told(snavio)[-1] == ("command.invalid", "source-banned")


async def test_a_source_that_takes_too_much_loses_the_warm_path(snavio):
    snavio.register_service(OTHER)
    snavio.grant(OTHER, *PAIR)
    await send(snavio, 5, source=OTHER)
    await send(snavio, 40)
    assert ("fairness.warm-path-ban", "") in told(snavio)
    assert ("fairness.warm-path-ban", "") in told(snavio, "target-tenant")
    assert snavio.delivered("bot")[-1].metadata.path == "slow"


async def test_a_payload_is_checked_where_the_route_has_a_check(snavio):
    def validate(payload: msgspec.Raw):
        return None if b'"n":0' in bytes(payload) else "n must be 0"

    snavio.register_route(*PAIR, validate=validate)
    await send(snavio, 2)
    assert sorted(told(snavio)) == [("command.delivered", ""), ("command.invalid", "schema-violation")]


async def test_a_large_payload_reaches_the_handler_by_claim_check(snavio):
    snavio.register_route(*PAIR, max_message_bytes=8192)
    seen = []
    app = Target("bot")

    @app.command("notify")
    async def handle(cmd: str):
        seen.append(cmd)

    async with snavio.producer(SOURCE) as producer:
        await producer.send(*PAIR, "x" * 10_000)
    assert snavio.delivered("bot")[0].command.payload_ref is not None
    await snavio.run(app)
    assert seen == ["x" * 10_000]


async def test_clocks_that_are_off_are_refused(snavio, clock):
    real = snavio.producer(SOURCE)
    late = Producer("", "", source=SOURCE, now=lambda: clock() - 61, origin=real._origin, opened=real._opened)
    async with late as producer:
        await producer.send(*PAIR, {})
    assert told(snavio)[-1] == ("command.invalid", "timestamp-out-of-window")


def test_plain_programs_can_use_it_too(snavio):
    with SyncProducer(producer=snavio.producer(SOURCE)) as producer:
        producer.send(*PAIR, {})
    assert len(snavio.delivered("bot")) == 1


def test_a_plain_producer_that_is_not_open_says_so(snavio):
    producer = SyncProducer(producer=snavio.producer(SOURCE))
    with pytest.raises(ClosedError, match="use `with`"):
        producer.send(*PAIR, {})
    with producer:
        pass
    with pytest.raises(ClosedError):
        producer.send(*PAIR, {})
