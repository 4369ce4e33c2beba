"""Replays through the real pipeline on the fakes: enforced like live traffic, never lost, never twice where it matters."""

import msgspec
import pytest
from dispatch_world import World

from snavio.aws.errors import Transient
from snavio.aws.values import Outgoing
from snavio.domain.screening import REPLAYER
from snavio.replay.origins import QueueOrigin
from snavio.replay.records import Records, ReplayRecord
from snavio.replay.recovered import Filters, recover
from snavio.replay.replay_keys import ensure_replay_key, replay_key
from snavio.replay.replayer import Replayer
from snavio.wire.commands import Admitted, Escalated, EscalationReason, encode
from snavio.wire.names import Names
from snavio.wire.signing import SigningKey
from snavio.wire.times import format_time

SOURCE = "acme/billing"
IDS = [f"00000000-0000-4000-8000-00000000000{n}" for n in range(10)]


class Bus:
    """Carries what is emitted to ingress, as the rule would; the entries numbered in `refuse` fail."""

    def __init__(self, world):
        self._world = world
        self.refuse = set()

    async def emit(self, emissions):
        answers = []
        for number, one in enumerate(emissions):
            if number in self.refuse:
                answers.append("InternalFailure: try again")
                continue
            event = {"source": one.source, "detail": msgspec.Raw(one.detail.encode())}
            await self._world.put(msgspec.json.encode(event).decode())
            answers.append(None)
        return answers


class Scene:
    def __init__(self):
        self.world = World()
        self.world.tables.create(self.world.names.control, key=("pk", "sk"))
        self.world.vault.keys.add(Names().secrets_key)
        self.bus = Bus(self.world)
        self.dlq = self.world.queue(self.world.names.dlq(self.world.names.slow))
        self.records = Records(self.world.tables, self.world.names, clock=self.world.clock)

    async def prepare(self):
        world = self.world
        await world.service(SOURCE)
        await world.route("bot", "pay", dedupe_mode="strict")
        await world.route("bot", "say")
        for command in ("pay", "say"):
            await world.grant(SOURCE, "bot", command)
        await ensure_replay_key(world.store, world.sealer, world.names, clock=world.clock, actor="test")
        self.workers = [await world.start(service) for service in ("shield", "fast", "slow")]

    def admitted(self, number, name, **fields):
        return Admitted(
            source=SOURCE,
            id=IDS[number],
            timestamp=format_time(self.world.clock() - 3600),
            target="bot",
            name=name,
            received_at=self.world.clock() - 3600,
            payload=msgspec.Raw(b'{"b": 1.0, "a": 2}'),
            **fields,
        )

    async def die(self, *messages):
        for message in messages:
            body = message if isinstance(message, str) else encode(message)
            await self.world.queues.send(self.dlq, [Outgoing(body)])

    async def replay(self, *, dry_run=False, **filters):
        async def no_client(service):
            raise Transient(f"no {service} here")

        world = self.world
        replayer = Replayer(
            QueueOrigin(world.queues, self.dlq, no_client, wait_seconds=0),
            self.bus,
            self.records,
            await replay_key(world.store, world.sealer),
            clock=world.clock,
        )
        record = ReplayRecord(
            replay_id="replay-1",
            operator="ann",
            origin=self.dlq,
            reason="the target was down",
            filters=Filters(**filters),
            started_at=world.clock(),
            dry_run=dry_run,
        )
        try:
            return await replayer.run(record)
        finally:
            await world.pump(*self.workers)

    def left(self):
        return [recover(body) for body in self.world.bodies(self.world.names.dlq(self.world.names.slow))]


@pytest.fixture
async def scene():
    scene = Scene()
    await scene.prepare()
    return scene


async def test_every_form_a_command_dies_in_is_replayed_under_its_own_source(scene):
    live = scene.world.command(SOURCE, "bot", "say", {"x": 1}, id=IDS[0], correlation_id="c")
    escalated = Escalated(
        scene.admitted(1, "say"), EscalationReason.CACHE_MISS, escalated_at=scene.world.clock()
    )
    await scene.die(msgspec.json.encode(live).decode(), escalated, scene.admitted(2, "say"), "garbage")
    record = await scene.replay()
    arrived = {one["metadata"]["id"]: one for one in scene.world.delivered("bot", "say")}
    assert arrived.keys() == set(IDS[:3])
    for one in arrived.values():
        assert one["command"]["source"] == SOURCE
        assert one["metadata"]["replayed"] is True
        assert one["metadata"]["replay_id"] == "replay-1"
        assert one["metadata"]["replay_reason"] == "the target was down"
    assert arrived[IDS[0]]["metadata"]["correlation_id"] == "c"
    assert arrived[IDS[2]]["command"]["payload"] == {"a": 2, "b": 1.0}
    assert (record.counts.emitted, record.counts.unreadable) == (3, 1)
    assert scene.left() == [None]
    told = scene.world.events("snavio.command.delivered")
    assert all((event.replay, event.replay_id) == (True, "replay-1") for event in told)


async def test_a_dead_letter_queue_replayed_twice_delivers_strict_commands_once(scene):
    dead = [scene.admitted(number, "pay") for number in range(4)]
    await scene.die(*dead)
    await scene.replay()
    await scene.die(*dead)
    await scene.replay()
    arrived = [one["metadata"]["id"] for one in scene.world.delivered("bot", "pay")]
    assert sorted(arrived) == IDS[:4]
    assert len(scene.world.events("snavio.command.duplicate")) == 4


async def test_a_message_stays_until_its_command_is_on_the_bus_again(scene):
    await scene.die(*(scene.admitted(number, "say") for number in range(4)))
    scene.bus.refuse = {1, 2}
    record = await scene.replay()
    assert (record.counts.emitted, record.counts.failed) == (2, 2)
    assert len(scene.left()) == 2
    scene.bus.refuse = set()
    await scene.replay()
    assert sorted(one["metadata"]["id"] for one in scene.world.delivered("bot", "say")) == IDS[:4]
    assert scene.left() == []


async def test_a_run_that_dies_before_deleting_is_gone_on_with_and_strict_commands_stay_single(scene):
    await scene.die(*(scene.admitted(number, "pay") for number in range(3)))
    delete = scene.world.queues.delete

    async def dies(queue, receipts):
        if queue == scene.dlq:
            raise Transient("the network went away")
        return await delete(queue, receipts)

    scene.world.queues.delete = dies
    with pytest.raises(Transient):
        await scene.replay()
    scene.world.queues.delete = delete
    kept = await scene.records.find("replay-1")
    assert kept.failure
    assert kept.finished_at is None
    assert len(scene.left()) == 3
    await scene.replay()
    assert sorted(one["metadata"]["id"] for one in scene.world.delivered("bot", "pay")) == IDS[:3]


async def test_only_what_is_asked_for_is_replayed_and_a_dry_run_touches_nothing(scene):
    await scene.die(scene.admitted(0, "say"), scene.admitted(1, "pay"), scene.admitted(2, "say"))
    dry = await scene.replay(dry_run=True, commands=("say",))
    assert (dry.counts.matched, dry.counts.emitted) == (2, 0)
    assert len(scene.left()) == 3
    await scene.replay(commands=("say",), ids=(IDS[2], IDS[1]))
    assert [one["metadata"]["id"] for one in scene.world.delivered("bot", "say")] == [IDS[2]]
    assert {command.id for command in scene.left()} == {IDS[0], IDS[1]}
    assert await scene.replay(dry_run=True, since=scene.world.clock() - 60) is not None


async def test_a_replay_passes_every_check_and_is_audited(scene):
    await scene.world.revoke(SOURCE, "bot", "say")
    await scene.die(scene.admitted(0, "say"))
    for worker in scene.workers:
        await worker.tick("refresh-registry")
    await scene.replay()
    assert scene.world.delivered("bot", "say") == []
    [failed] = scene.world.events("snavio.command.failed")
    assert (failed.reason, failed.replay_id) == ("acl-deny", "replay-1")
    audit = [
        msgspec.json.decode(item["body"])
        for item in scene.world.tables.tables[scene.world.names.control].items.values()
        if item["pk"].startswith("audit#")
    ]
    assert [(one["actor"], one["action"]) for one in sorted(audit, key=lambda one: one["action"])] == [
        ("ann", "replay-finished"),
        ("ann", "replay-started"),
    ]


@pytest.mark.parametrize(
    "forged",
    [{"replayed": True, "replay_id": "x"}, {"replay_id": "x"}, {"replay_reason": "x"}, {"replayed": True}],
)
@pytest.mark.parametrize("version_id", ["hmac-v1", "replay-v1"])
async def test_a_live_producer_cannot_pass_a_command_off_as_replayed(scene, forged, version_id):
    await scene.world.send(SOURCE, "bot", "say", {}, version_id=version_id, signed_by=SOURCE, **forged)
    # Not even by emitting as the replayer, whose name no source can have.
    await scene.world.send(REPLAYER, "bot", "say", {}, version_id=version_id, **forged)
    await scene.world.pump(*scene.workers, patience=5)
    assert scene.world.delivered("bot", "say") == []


async def test_a_replayed_command_cannot_be_passed_off_as_live(scene):
    """Whoever captured one and strips the marks has a signature by a key that is not the source's."""
    scene.world.secrets[SOURCE, "replay-v1"] = SigningKey(b"s" * 32)
    await scene.world.send(SOURCE, "bot", "say", {}, version_id="replay-v1")
    await scene.world.pump(*scene.workers, patience=5)
    assert scene.world.delivered("bot", "say") == []
