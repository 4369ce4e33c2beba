"""The cost model counts the calls that the workers really make."""

from collections import Counter

import pytest
from dispatch_world import World

from snavio.cli.cost import calls
from snavio.cli.cost.calls import Fills, calls_of
from snavio.cli.cost.workload import Path, Workload
from snavio.domain.models import Ban, BanMode, DedupeMode

SOURCE, TARGET, NAME = "acme/billing", "discord-bot", "notify-user"
COMMANDS = 10
TABLE_WRITES = {"put", "update", "delete"}


class Counting:
    """A port that notes what is asked of it."""

    def __init__(self, port, note):
        self._port = port
        self._note = note

    def __getattr__(self, name):
        method = getattr(self._port, name)
        if not callable(method):
            return method

        def counted(*args, **kwargs):
            self._note(name, args)
            return method(*args, **kwargs)

        return counted


class CountingWorld(World):
    """Counts, once told to, by (action, where)."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()
        self.rows = []
        self.sent = []
        self.counting = False
        self.queues = Counting(self.queues, self._queue_call)
        self.tables = Counting(self.tables, self._table_call)
        self.objects = Counting(self.objects, self._object_call)

    def _queue_call(self, name, args):
        if not self.counting or name not in {"receive", "send", "delete"}:
            return
        queue = args[0].rpartition("/")[2].removeprefix("snavio-").removesuffix("-queue")
        where = "target" if queue.startswith("target-") else queue
        # The world deletes one by one what the queue loop deletes in tens.
        self.counts[name, where] += 1 / COMMANDS if name == "delete" else 1
        if name == "send":
            self.sent += [len(message.body) for message in args[1]]

    def _table_call(self, name, args):
        table = args[0].removeprefix("snavio-") if args and isinstance(args[0], str) else ""
        if not self.counting:
            return
        if name == "put_batch":
            self.counts["write", table] += len(args[1])
            self.rows += [item for item in args[1] if table == "outbox"]
        elif name in TABLE_WRITES:
            self.counts["write", table] += 1
        elif name == "query":
            self.counts["read", table] += 1
        elif name == "transact":
            raise AssertionError("a transaction costs twice: the model knows of none")

    def _object_call(self, name, args):
        if self.counting and name == "put":
            self.counts["put object", "claims"] += 1


async def run(path: Path) -> CountingWorld:
    world = CountingWorld()
    await world.service(SOURCE)
    route = {
        Path.STRICT: {"dedupe_mode": DedupeMode.STRICT},
        Path.CLAIM_CHECK: {"max_message_bytes": 8192},
        Path.LIMITED: {"rate_limit": (1000,)},
    }
    await world.route(TARGET, NAME, **route.get(path, {}))
    if path is not Path.REJECTED:
        await world.grant(SOURCE, TARGET, NAME)
    if path is Path.SLOW:
        await world.store.put_ban(Ban(source=SOURCE, mode=BanMode.COLD_ONLY), actor="test")
    # No skew samples: which command gets one depends on its id.
    workers = [
        await world.start("shield", skew_sample_rate=0.0),
        await world.start("fast"),
        await world.start("slow"),
    ]
    payload = "x" * (10_000 if path is Path.CLAIM_CHECK else 100)
    if path is Path.LIMITED:
        await warm_up(world, workers)
    for _ in range(COMMANDS):
        forged = {"signed_by": "nobody/else"} if path is Path.INVALID else {}
        await world.send(SOURCE, TARGET, NAME, payload, **forged)
    world.counting = True
    for worker in workers:
        while world.bodies(worker.queue.rpartition("/")[2]):
            await world.step(worker)
    if path is Path.LIMITED:
        await prefetch(workers)
    return world


async def prefetch(workers):
    [replenish] = [task for task in workers[1].worker.tasks if task.name == "replenish-leases"]
    book = replenish._work.__self__
    for line in book._lines.values():
        line.wanted = True
    await book.prefetch_due()


async def warm_up(world, workers):
    """Let fast hold a lease large enough, taken before anything is counted."""
    for _ in range(30):
        await world.send(SOURCE, TARGET, NAME, "x")
    await world.pump(*workers)
    world.clock.advance(0.1)
    await prefetch(workers)


@pytest.mark.parametrize("path", Path)
async def test_workers_make_the_calls_the_model_counts(path):
    world = await run(path)
    load = Workload(rate=1, mix={path: 1.0}, targets=1, payload_bytes=100, claim_bytes=10_000)
    fills = Fills(shield=COMMANDS, fast=COMMANDS, slow=COMMANDS, publish=COMMANDS, lease=COMMANDS)
    expected: Counter[tuple[str, str]] = Counter()
    for call in calls_of(path, load, fills):
        if call.where in {
            "ingress",
            "fast",
            "slow",
            "target",
            "outbox",
            "dedupe",
            "limits",
            "changelog",
            "claims",
        }:
            expected[call.action.value, call.where] += call.count * COMMANDS
    # What the bus sends to ingress the test sends itself, before it counts; skew samples are off.
    del expected["send", "ingress"]
    expected["write", "outbox"] -= calls.SKEW_SAMPLES * COMMANDS * (path is not Path.INVALID)
    assert {key: round(count, 6) for key, count in world.counts.items()} == {
        key: round(count, 6) for key, count in expected.items()
    }


@pytest.mark.parametrize("path", Path)
async def test_messages_and_rows_weigh_no_more_than_the_model_says(path):
    world = await run(path)
    payload = 10_000 if path is Path.CLAIM_CHECK else 100
    assert all(size - payload <= calls.ENVELOPE_BYTES for size in world.sent)
    for row in world.rows:
        weight = sum(
            len(name) + (len(value) if isinstance(value, str) else 10) for name, value in row.items()
        )
        assert weight <= calls.EVENT_BYTES <= calls.WRITE_BYTES
