"""What becomes of a command on each path, with every reason a sender can be told."""

import msgspec
import pytest
from dispatch_world import World

from snavio.domain.models import (
    Ban,
    BanMode,
    DedupeMode,
    DispatchMode,
    FairnessPolicy,
    Quota,
    RateLimit,
    Settings,
)
from snavio.runtime.outcome import Done, Retry

SOURCE, TARGET, NAME = "acme/billing", "discord-bot", "notify-user"


async def pipeline(world: World, **settings):
    return [await world.start(name, **settings.get(name, {})) for name in ("shield", "fast", "slow")]


async def ready(world: World, **route):
    await world.service(SOURCE)
    await world.route(TARGET, NAME, **route)
    await world.grant(SOURCE, TARGET, NAME)


async def test_a_warm_command_is_delivered_fast_without_its_signature():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    command_id = await world.send(
        SOURCE,
        TARGET,
        NAME,
        {"a": 1e3},
        correlation_id="c-1",
        traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    )
    await world.pump(*workers)
    [message] = world.delivered(TARGET, NAME)
    assert message["command"] == {"source": SOURCE, "target": TARGET, "name": NAME, "payload": {"a": 1000.0}}
    metadata = message["metadata"]
    assert metadata["id"] == command_id
    assert metadata["path"] == "fast"
    assert metadata["possible_duplicate"] is False
    assert metadata["correlation_id"] == "c-1"
    assert "hmac" not in metadata
    assert "version_id" not in metadata
    [event] = world.events()
    assert (event.command_id, event.path, event.tenant) == (command_id, "fast", "acme")


@pytest.mark.parametrize("mode", [DedupeMode.NONE, DedupeMode.STRICT])
async def test_more_commands_than_one_call_takes_are_handled_together(mode):
    world = World()
    await ready(world, dedupe_mode=mode)
    shield, fast, slow = await pipeline(world)
    sent = {await world.send(SOURCE, TARGET, NAME, {"n": number}) for number in range(35)}
    await world.pump(shield)
    batch = [message for _ in range(4) for message in await world.queues.receive(fast.queue, wait_seconds=0)]
    assert set(map(type, await fast.handle(batch))) == {Done}
    await world.pump(slow)
    assert {one["metadata"]["id"] for one in world.delivered(TARGET, NAME)} == sent
    assert {one.command_id for one in world.events("snavio.command.delivered")} == sent


@pytest.mark.parametrize("service", ["shield", "fast", "slow"])
async def test_a_message_whose_event_cannot_be_recorded_returns_alone(service):
    world = World()
    await ready(world)
    worker = dict(zip(["shield", "fast", "slow"], await pipeline(world), strict=True))
    path = {"shield": [], "fast": ["shield"], "slow": ["shield", "fast"]}[service]
    # Shield tells of what is too old, fast of what it delivers, slow of what has no route.
    name = f"{NAME}-unknown" if service == "slow" else NAME
    told = {"timestamp": "2020-01-01T00:00:00Z"} if service == "shield" else {}
    sent = [await world.send(SOURCE, TARGET, name, **told) for _ in range(4)]
    await world.pump(*(worker[name] for name in path))
    subject, put_batch = worker[service], world.tables.put_batch

    async def but_one(table, items):
        left = [item for item in items if sent[1] in item["body"]]
        await put_batch(table, [item for item in items if item not in left])
        return left

    world.tables.put_batch = but_one
    batch = await world.queues.receive(subject.queue, wait_seconds=0)
    outcomes = await subject.handle(batch)
    assert [isinstance(outcome, Retry) for outcome in outcomes] == [sent[1] in one.body for one in batch]


async def test_an_unregistered_route_is_refused_by_slow_and_told():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    await world.send(SOURCE, TARGET, "unheard-of")
    await world.pump(*workers)
    [failed] = world.events("snavio.command.failed")
    assert failed.reason == "route-missing"


async def test_a_route_registered_a_moment_ago_is_found_by_the_slow_path():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    await world.route(TARGET, "brand-new")
    await world.grant(SOURCE, TARGET, "brand-new")
    await world.send(SOURCE, TARGET, "brand-new")
    await world.pump(*workers)
    assert len(world.delivered(TARGET, "brand-new")) == 1


async def test_a_source_registered_a_moment_ago_passes_shield():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    await world.service("acme/new")
    await world.grant("acme/new", TARGET, NAME)
    await world.send("acme/new", TARGET, NAME)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 1


async def test_a_command_without_a_grant_is_denied():
    world = World()
    await ready(world)
    await world.service("acme/other")
    workers = await pipeline(world)
    await world.send("acme/other", TARGET, NAME)
    await world.pump(*workers)
    [failed] = world.events("snavio.command.failed")
    assert failed.reason == "acl-deny"
    assert world.delivered(TARGET, NAME) == []


async def test_an_ended_route_delivers_nothing():
    world = World()
    await ready(world, expires_at=world.clock() + 10)
    workers = await pipeline(world)
    world.clock.advance(11)
    for worker in workers:
        await worker.tick("refresh-registry")
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert world.delivered(TARGET, NAME) == []
    assert world.events("snavio.command.failed")[0].reason == "route-missing"


async def test_fast_escalates_what_its_caches_can_no_longer_vouch_for():
    world = World()
    await ready(world, sensitivity="critical")
    shield, fast, slow = await pipeline(world)
    world.clock.advance(4.5)  # a critical grant is expired, keys and routes are not
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast)
    [escalated] = world.events("snavio.command.escalated")
    assert escalated.reason == "cache_expired"
    await world.pump(slow)
    assert len(world.delivered(TARGET, NAME)) == 1


async def test_nothing_is_delivered_on_a_registry_that_cannot_be_refreshed():
    world = World()
    await ready(world)
    shield, fast, slow = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast, patience=0)
    before = len(world.delivered(TARGET, NAME))
    world.clock.advance(700)
    del world.tables.tables[world.names.changelog]
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(shield, fast, slow)
    assert len(world.delivered(TARGET, NAME)) == before
    assert len(world.bodies(world.names.ingress)) == 1, "it waits, unacknowledged"


async def test_cold_only_mode_sends_everything_through_slow():
    world = World()
    await ready(world)
    await world.store.put_settings(Settings(dispatch_mode=DispatchMode.COLD_ONLY), actor="test")
    workers = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert world.delivered(TARGET, NAME)[0]["metadata"]["path"] == "slow"
    assert world.events("snavio.command.escalated")[0].reason == "cold_only"


@pytest.mark.parametrize(
    ("mode", "reason"), [(BanMode.COLD_ONLY, "cold_only"), (BanMode.WARM, "warm_path_ban")]
)
async def test_a_source_banned_from_the_warm_path_is_served_by_slow(mode, reason):
    world = World()
    await ready(world)
    await world.store.put_ban(Ban(source=SOURCE, mode=mode, until=world.clock() + 60), actor="test")
    workers = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert world.delivered(TARGET, NAME)[0]["metadata"]["path"] == "slow"
    assert world.events("snavio.command.escalated")[0].reason == reason


async def test_a_source_banned_outright_is_refused_by_shield():
    world = World()
    await ready(world)
    await world.store.put_ban(Ban(source=SOURCE, mode=BanMode.OUTRIGHT), actor="test")
    workers = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert world.events("snavio.command.invalid")[0].reason == "source-banned"
    assert world.delivered(TARGET, NAME) == []


async def test_a_limit_refuses_what_exceeds_it_with_hints():
    world = World()
    await ready(world, rate_limit=(3, 60))
    workers = await pipeline(world)
    for _ in range(5):
        await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 3
    failures = world.events("snavio.command.failed")
    assert [failure.reason for failure in failures] == ["rate-limit-exceeded"] * 2
    for failure in failures:
        assert 0 < failure.retry_after_ms <= 20_001
        assert failure.throttle_until > failure.emitted_at


async def test_a_limit_in_shadow_mode_reports_and_delivers():
    world = World()
    await ready(world, rate_limit=RateLimit(2, 60, shadow=True))
    workers = await pipeline(world)
    for _ in range(5):
        await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 5
    assert len(world.events("snavio.command.over_limit")) == 3
    assert world.events("snavio.command.failed") == []


async def test_a_quota_is_looked_at_only_for_a_banned_source():
    world = World()
    await ready(world)
    limit = RateLimit(1, 60)
    await world.store.put_quota(
        Quota(source=SOURCE, target=TARGET, command=NAME, rate_limit=limit), actor="test"
    )
    workers = await pipeline(world, fast={"dispatch_mode": DispatchMode.COLD_ONLY})
    for _ in range(3):
        await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 3, "on the cold path for another reason"
    await world.store.put_ban(Ban(source=SOURCE, mode=BanMode.WARM), actor="test")
    world.clock.advance(1)
    for worker in workers:
        await worker.tick("refresh-registry")
    for _ in range(3):
        await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 4
    failures = world.events("snavio.command.failed")
    assert {(failure.reason, failure.sub_reason) for failure in failures} == {
        ("rate-limit-exceeded", "source-quota")
    }


async def test_a_payload_too_large_for_the_target_travels_by_claim_check():
    world = World()
    await ready(world, max_message_bytes=8192)
    workers = await pipeline(world)
    payload = {"blob": "x" * 20_000}
    await world.send(SOURCE, TARGET, NAME, payload)
    await world.pump(*workers)
    [message] = world.delivered(TARGET, NAME)
    assert "payload" not in message["command"]
    ref = message["command"]["payload_ref"]
    stored = await world.objects.get(ref["bucket"], ref["key"])
    assert msgspec.json.decode(stored.body) == payload
    assert world.events("snavio.command.escalated")[0].reason == "claim_check"


async def test_a_queue_that_is_gone_fails_its_commands_and_keeps_them_for_replay():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    del world.queues.queues[world.queue(f"target-{TARGET}-{NAME}")]
    await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    [failed] = world.events("snavio.command.failed")
    assert failed.reason == "delivery-failure"
    assert len(world.bodies(world.names.dlq(world.names.slow))) == 1


async def test_a_failing_target_delays_only_itself():
    world = World()
    await ready(world)
    await world.route("healthy", NAME)
    await world.grant(SOURCE, "healthy", NAME)
    workers = await pipeline(world)
    del world.queues.queues[world.queue(f"target-{TARGET}-{NAME}")]
    for _ in range(20):
        await world.send(SOURCE, TARGET, NAME)
        await world.send(SOURCE, "healthy", NAME)
    await world.pump(*workers)
    healthy = world.delivered("healthy", NAME)
    assert len(healthy) == 20
    assert {message["metadata"]["path"] for message in healthy} == {"fast"}
    assert len(world.events("snavio.command.failed")) == 20


async def test_a_strict_command_sent_many_times_through_many_workers_is_delivered_once():
    world = World()
    await ready(world, dedupe_mode=DedupeMode.STRICT)
    shield, *_ = await pipeline(world)
    fasts = [await world.start("fast") for _ in range(3)]
    slows = [await world.start("slow") for _ in range(3)]
    event = world.command(SOURCE, TARGET, NAME, {"n": 1})
    await world.put(*[event] * 1000)
    await world.pump(shield, *fasts, *slows, patience=10)
    [message] = world.delivered(TARGET, NAME)
    assert message["metadata"]["possible_duplicate"] is False
    assert len(world.events("snavio.command.duplicate")) == 999
    assert len(world.events("snavio.command.delivered")) == 1


async def test_a_strict_command_is_fresh_again_after_its_memory_ends():
    world = World()
    await ready(world, dedupe_mode=DedupeMode.STRICT)
    workers = await pipeline(world, fast={"seen_seconds": 300.0})
    event = world.command(SOURCE, TARGET, NAME)
    await world.put(event)
    await world.pump(*workers)
    command_id = event["detail"]["metadata"]["id"]
    world.clock.advance(301)
    for worker in workers:
        await worker.tick("refresh-registry")
    await world.send(SOURCE, TARGET, NAME, id=command_id)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 2


async def test_another_source_cannot_use_up_an_id():
    world = World()
    await ready(world, dedupe_mode=DedupeMode.STRICT)
    await world.service("mallory/spoof")
    await world.grant("mallory/spoof", TARGET, NAME)
    workers = await pipeline(world)
    command_id = await world.send("mallory/spoof", TARGET, NAME)
    await world.send(SOURCE, TARGET, NAME, id=command_id)
    await world.pump(*workers)
    assert len(world.delivered(TARGET, NAME)) == 2


async def test_a_rate_limited_strict_command_may_be_sent_again():
    world = World()
    await ready(world, dedupe_mode=DedupeMode.STRICT, rate_limit=(1, 10))
    workers = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME)
    refused = await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert world.events("snavio.command.failed")[0].command_id == refused
    world.clock.advance(11)
    await world.pump(*[await world.start(name) for name in ("shield", "fast", "slow")])
    fresh = await pipeline(world)
    await world.send(SOURCE, TARGET, NAME, id=refused)
    await world.pump(*fresh)
    assert len(world.delivered(TARGET, NAME)) == 2


async def test_a_dominant_source_loses_the_warm_path_and_a_quiet_one_keeps_it():
    world = World()
    await ready(world)
    await world.service("quiet/one")
    await world.grant("quiet/one", TARGET, NAME)
    workers = await pipeline(world)
    for number in range(60):
        await world.send("quiet/one" if number % 8 == 7 else SOURCE, TARGET, NAME)
        await world.pump(*workers)
    paths = {(m["command"]["source"], m["metadata"]["path"]) for m in world.delivered(TARGET, NAME)[-16:]}
    assert paths == {(SOURCE, "slow"), ("quiet/one", "fast")}
    bans = world.events("snavio.fairness.warm-path-ban")
    assert sorted(ban.tenant for ban in bans) == ["acme", "owner"], "once a window, to both sides"
    assert all(ban.source_share > 0.8 and ban.competing_share >= 0.1 for ban in bans)


async def test_a_lone_source_is_never_penalised():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    for _ in range(300):
        await world.send(SOURCE, TARGET, NAME)
    await world.pump(*workers)
    assert {message["metadata"]["path"] for message in world.delivered(TARGET, NAME)} == {"fast"}
    assert world.events("snavio.fairness.warm-path-ban") == []


async def test_repeated_bans_become_a_ban_everywhere_and_saturation_a_hard_rejection():
    world = World()
    fairness = FairnessPolicy(min_dispatches=5, window_seconds=5, ban_seconds=5)
    await ready(world, fairness=fairness, rate_limit=(20, 60))
    await world.service("quiet/one")
    await world.grant("quiet/one", TARGET, NAME)
    # Leases would spread the few units over time; here every dispatch of fast is wanted at once.
    await world.route("open", NAME, fairness=fairness)
    for source in (SOURCE, "quiet/one"):
        await world.grant(source, "open", NAME)
    workers = await pipeline(world, slow={"global_ban_after": 2})
    for _ in range(3):
        for number in range(30):
            await world.send("quiet/one" if number % 7 == 6 else SOURCE, "open", NAME)
            await world.pump(*workers)
        world.clock.advance(6)
    for worker in workers:
        await worker.tick("refresh-registry")
    ban = workers[1].worker.intakes and await world.store._read((f"ban#{SOURCE}", f"open#{NAME}"), Ban)
    assert ban is not None
    assert ban.mode is BanMode.WARM
    await world.store.put_ban(Ban(source=SOURCE, mode=BanMode.WARM), actor="test")
    world.clock.advance(1)
    for worker in workers:
        await worker.tick("refresh-registry")
    for number in range(40):
        await world.send("quiet/one" if number % 7 == 6 else SOURCE, TARGET, NAME)
    await world.pump(*workers)
    hard = [e for e in world.events("snavio.command.failed") if e.reason == "fairness-violation"]
    assert hard
    assert {event.source for event in hard} == {SOURCE}
    assert all(
        event.source_share > 0.8 and event.dispatch_volume > 0 and event.retry_after_ms > 0 for event in hard
    )


async def test_every_hop_is_traced_back_to_the_producer():
    world = World()
    await ready(world)
    workers = await pipeline(world)
    trace = "a" * 32
    await world.send(SOURCE, TARGET, NAME, traceparent=f"00-{trace}-{'b' * 16}-01")
    await world.pump(*workers)
    sends = [span for span in world.telemetry.spans if span.name.startswith("send ")]
    assert [span.name for span in sends] == ["send snavio-fast", f"send target-{TARGET}-{NAME}"]
    assert all(link.trace_id == trace for span in sends for link in span.links)
    assert all(span.links for span in sends)
