"""Batches, retries and closing, against a bus that does what the test says."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.domain.screening import Passed, ScreeningPolicy, screen
from snavio.sdk.batching import Accepted, Failed, backoff_seconds, entry_failed, take_batch
from snavio.sdk.errors import ClosedError, ConfigError, SendError, ThrottledError
from snavio.sdk.producer import Command, Producer, ProducerOptions, WhenThrottled
from snavio.sdk.tenant_config import Service, TenantConfig
from snavio.sdk.testing.registry import MemoryRegistry

SOURCE = "acme/billing"
THROTTLED = entry_failed("ThrottlingException", "slow down")
DENIED = Failed("AccessDeniedException", "no", permanent=True)


class ScriptedBus:
    """Answers each request by the next function of the script, then accepts; remembers everything."""

    def __init__(self, *script):
        self.script = deque(script)
        self.requests = []

    async def put(self, details):
        self.requests.append([json.loads(detail) for detail in details])
        if self.script:
            answer = self.script.popleft()(details)
            return await answer if asyncio.iscoroutine(answer) else answer
        return [Accepted("e")] * len(details)

    @property
    def ids(self):
        return [[detail["metadata"]["id"] for detail in request] for request in self.requests]


class Origin:
    """A gateway that may be out of order, or behind the times."""

    def __init__(self, registry):
        self.registry = registry
        self.failing = False
        self.asked = 0
        self.old_services = None

    async def fetch(self):
        self.asked += 1
        if self.failing:
            raise ConfigError("out of order")
        services = self.old_services or self.registry.services_of("acme")
        return TenantConfig(tenant="acme", services=services, bus="b")


@pytest.fixture
def origin(registry):
    return Origin(registry)


@pytest.fixture
def registry():
    made = MemoryRegistry()
    made.add_key(SOURCE, previous_ends_at=0)
    return made


@pytest.fixture
def producer_on(origin):
    def make(bus, now=time.time, **options):
        @asynccontextmanager
        async def opened(config, source):
            yield bus

        return Producer("", "", now=now, options=ProducerOptions(**options), origin=origin, opened=opened)

    return make


def commands(count):
    return [Command("bot", "notify", {"n": n}) for n in range(count)]


async def test_full_batches_go_at_once_and_the_rest_after_the_linger(producer_on):
    bus = ScriptedBus()
    async with producer_on(bus, linger_seconds=0.01) as producer:
        await asyncio.gather(*(producer.send("bot", "notify", {"n": n}) for n in range(23)))
        assert sorted(map(len, bus.requests)) == [3, 10, 10]


async def test_only_the_failed_entries_are_sent_again_with_the_same_id_and_a_new_signature(
    producer_on, registry
):
    bus = ScriptedBus(lambda details: [Accepted("e") if n != 3 else THROTTLED for n in range(len(details))])
    clock = iter(range(1_800_000_000, 1_900_000_000, 50))
    last = [0.0]

    def now():
        last[0] = next(clock)
        return float(last[0])

    async with producer_on(bus, now=now) as producer:
        await producer.send_many(commands(10))
        assert [len(request) for request in bus.requests] == [10, 1]
        first, again = bus.requests[0][3], bus.requests[1][0]
        assert again["metadata"]["id"] == first["metadata"]["id"]
        assert again["metadata"]["timestamp"] != first["metadata"]["timestamp"]
        body = json.dumps({"source": SOURCE, "detail": again})
        assert isinstance(screen(body, last[0], registry, ScreeningPolicy()), Passed)


async def test_what_the_bus_will_never_have_fails_alone_and_at_once(producer_on):
    malformed = entry_failed("MalformedDetail", "not JSON")
    bus = ScriptedBus(lambda _: [Accepted("e"), malformed, Accepted("e")])
    async with producer_on(bus) as producer:
        first, second, third = await producer.send_many(commands(3))
    assert first.event_id == third.event_id == "e"
    assert isinstance(second, SendError)
    assert second.code == "MalformedDetail"
    assert len(bus.requests) == 1


async def test_a_request_refused_for_one_entry_is_halved_until_that_one_stands_alone(producer_on):
    def refuse_seven(details):
        if any('"n":7' in detail for detail in details):
            return [Failed("ValidationException", "too big", permanent=True)] * len(details)
        return [Accepted("e")] * len(details)

    bus = ScriptedBus(*[refuse_seven] * 20)
    async with producer_on(bus) as producer:
        results = await producer.send_many(commands(10))
    assert [n for n, result in enumerate(results) if isinstance(result, SendError)] == [7]


async def test_a_command_is_given_up_in_the_end_and_the_error_says_that_it_may_have_arrived(producer_on):
    unanswered = Failed("ReadTimeoutError", "no answer", uncertain=True)
    bus = ScriptedBus(*[lambda details: [unanswered] * len(details)] * 100)
    async with producer_on(bus, give_up_seconds=0.1) as producer:
        with pytest.raises(SendError) as caught:
            await producer.send("bot", "notify", {})
    assert caught.value.uncertain
    assert len(bus.requests) > 1
    assert {only for [only] in bus.ids} == {caught.value.command_id}


async def test_closing_sends_what_waits_without_lingering(producer_on, eventually):
    bus = ScriptedBus()
    async with producer_on(bus, linger_seconds=60) as producer:
        sending = asyncio.create_task(producer.send("bot", "notify", {}))
        await eventually(lambda: producer._sender._waiting)
    assert (await sending).event_id == "e"
    with pytest.raises(ClosedError):
        await producer.send("bot", "notify", {})


async def test_closing_in_a_dead_calm_ends_and_says_what_was_not_sent(producer_on, eventually):
    async def never(details):
        await asyncio.Event().wait()

    async with producer_on(ScriptedBus(never), linger_seconds=0, close_seconds=0.05) as producer:
        sending = asyncio.create_task(producer.send("bot", "notify", {}))
        await eventually(lambda: producer._sender._in_flight)
    with pytest.raises(ClosedError, match="before the command was sent"):
        await sending


async def test_senders_wait_for_room_instead_of_piling_up(producer_on):
    gate = asyncio.Event()

    async def slow(details):
        await gate.wait()
        return [Accepted("e")] * len(details)

    bus = ScriptedBus(slow)
    async with producer_on(bus, in_flight=1, most_waiting=20) as producer:
        sending = [asyncio.create_task(producer.send("bot", "notify", n)) for n in range(100)]
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(producer._sender._waiting) <= 20
        gate.set()
        await asyncio.gather(*sending)
    assert sum(map(len, bus.requests)) == 100


async def test_an_expired_key_is_replaced_without_losing_the_command(producer_on, registry, origin):
    """The producer slept through the rotation and the grace: it fetches before it signs."""
    now = [time.time()]
    [service] = registry.services_of("acme")
    ending = msgspec.structs.replace(service.keys[0], not_after=now[0] + 60)
    origin.old_services = [Service(SOURCE, [ending])]
    bus = ScriptedBus()
    async with producer_on(bus, now=lambda: now[0], refresh_gap_seconds=0) as producer:
        assert producer.key_version == "hmac-v1"
        registry.add_key(SOURCE, previous_ends_at=now[0] + 60)
        origin.old_services = None
        now[0] += 120
        await producer.send("bot", "notify", {})
    assert [request[0]["metadata"]["version_id"] for request in bus.requests] == ["hmac-v2"]


async def test_a_throttled_command_waits_and_others_do_not(producer_on):
    bus = ScriptedBus()
    async with producer_on(bus, linger_seconds=0) as producer:
        until = time.time() + 0.2
        producer.pause("bot", "notify", until)
        held = asyncio.create_task(producer.send("bot", "notify", {}))
        await producer.send("bot", "other", {})
        assert not held.done()
        await held
        assert time.time() >= until
    assert [request[0]["command"]["name"] for request in bus.requests] == ["other", "notify"]


async def test_a_throttled_command_raises_when_asked_to(producer_on):
    bus = ScriptedBus()
    async with producer_on(bus, when_throttled=WhenThrottled.RAISE) as producer:
        producer.pause("bot", "notify", time.time() + 60)
        with pytest.raises(ThrottledError):
            await producer.send("bot", "notify", {})
        results = await producer.send_many(
            [Command("bot", "notify", {}), Command("bot", "other", {}), Command("bot", "notify", {})]
        )
    assert [type(result).__name__ for result in results] == ["ThrottledError", "Sent", "ThrottledError"]


async def test_a_failed_poll_leaves_the_producer_working(producer_on, registry, origin, eventually):
    bus = ScriptedBus()
    async with producer_on(bus, poll_seconds=1.0, refresh_gap_seconds=0) as producer:
        origin.failing = True
        producer.refresh_soon()
        await eventually(lambda: origin.asked == 2)
        await producer.send("bot", "notify", {})
        origin.failing = False
        registry.add_key(SOURCE, previous_ends_at=time.time() + 60)
        await eventually(lambda: producer.key_version == "hmac-v2")


class Item:
    def __init__(self, size):
        self.size = size


@given(st.lists(st.integers(1, 120), max_size=60))
def test_packing_keeps_order_loses_nothing_and_holds_to_the_limits(sizes):
    items = [Item(size) for size in sizes]
    waiting, packed = deque(items), []
    while waiting:
        batch = take_batch(waiting, max_bytes=100)
        assert 1 <= len(batch) <= 10
        assert len(batch) == 1 or sum(item.size for item in batch) <= 100
        packed += batch
    assert packed == items


@pytest.mark.parametrize(
    ("code", "permanent"),
    [
        ("ThrottlingException", False),
        ("InternalFailure", False),
        ("InternalException", False),
        ("ServiceUnavailable", False),
        ("MalformedDetail", True),
        ("InvalidArgument", True),
        ("NotAuthorizedForSource", True),
        ("", True),
    ],
)
def test_only_what_may_pass_is_tried_again(code, permanent):
    assert entry_failed(code, "").permanent is permanent


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_stays_within_its_bounds(attempt, roll):
    assert 0.025 <= backoff_seconds(attempt, roll) <= 5.0
