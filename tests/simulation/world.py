"""One simulated run: the fakes, the fleet of real workers, the plan performed, the faults ended, the history taken."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import msgspec
from dispatch_world import World
from simulation import seeding
from simulation.actors import Actors
from simulation.faults import Storm
from simulation.history import (
    BanPlaced,
    Buried,
    Deleted,
    Delivery,
    Escalation,
    History,
    Passed,
    Taken,
    Written,
)
from simulation.processes import SERVICES, WIRINGS, Process
from simulation.telemetry import ShardLog, StreamedItems, wire_outbox
from simulation.virtual_loop import elapsed, sleep, true_time
from simulation.weather import Settings, draw_settings
from simulation.workload import Plan, draw_plan

from snavio.domain.models import Ban
from snavio.registry.rows import decode_entry

if TYPE_CHECKING:
    from snavio.runtime.worker import Worker

_PATIENCE_SECONDS = 400.0
"""How long after the last fault everything may take to come to rest."""
_LOOK_SECONDS = 0.5


class SimulatedWorld(World):
    """The in-memory world of the dispatch tests on a virtual clock, with weather."""

    def __init__(self, seed: int, settings: Settings, plan: Plan, trace: list[tuple[Any, ...]]) -> None:
        super().__init__(true_time)
        self.seed = seed
        self.settings = settings
        self.plan = plan
        self.history = History(settings, trace=trace)
        self.storm = Storm(settings.weather, random.Random(f"{seed}/weather"), self.history.trace)
        self._rng = random.Random(f"{seed}/world")
        self._actors = Actors(self)
        self._fleet: dict[str, Process] = {}
        self._started = 0
        self._closing = False
        self._received: dict[tuple[str, str], float] = {}
        self._reading: dict[str, float] = {}
        self._fast_queue, self._slow_queue = self.queue(self.names.fast), self.queue(self.names.slow)
        self.tables.create(self.names.leases, key=("pk",))
        for table in (self.names.alerts, self.names.control):
            self.tables.create(table, key=("pk", "sk"))
        self.shard_log = ShardLog(random.Random(f"{seed}/stream"), settings.weather.behind)
        self.outbox = StreamedItems(self.shard_log)
        self.tables.tables[self.names.outbox].items = self.outbox
        # Operators' changes are on the record too, so their store reports as the workers' does.
        act = self.tables.transact

        async def transact(writes: Any, **options: Any) -> None:
            await act(writes, **options)
            self.changed(writes)

        self.store._tables = _Overridden(self.tables, transact=transact)
        for queue in (self.names.ingress, self.names.fast, self.names.slow):
            self.queues.queues[self.queue(queue)].max_receive_count = settings.max_receive_count

    # The run
    async def run(self) -> History:
        await self._actors.register(self.plan)
        keepers = [
            asyncio.create_task(self._keep_running(service, slot))
            for service in SERVICES
            for slot in range(self.settings.fleet[service])
        ]
        disasters = asyncio.create_task(self._disasters())
        started = true_time()
        for step in self.plan.steps:
            await sleep(max(0.0, started + step.at - true_time()))
            self.note("actor", step.action, "")
            await self._actors.perform(step)
        await disasters
        await self._actors.all_arrived()
        await sleep(max(0.0, started + self.settings.busy_seconds - true_time()))
        self.note("world", "calm", "")
        self.storm.calm = True
        await self._come_to_rest()
        self._closing = True
        for process in list(self._fleet.values()):
            process.stop()
        await asyncio.wait(keepers)
        for keeper in keepers:
            keeper.result()
        self._take_stock()
        return self.history

    async def _keep_running(self, service: str, slot: int) -> None:
        """A supervisor: whatever ends is started again after a while."""
        while not self._closing:
            self._started += 1
            process = Process(self, service, self._started)
            self._fleet[f"{service}/{slot}"] = process
            await process.live()
            if not self._closing:
                await sleep(self._rng.uniform(0.05, 2.0))

    async def _disasters(self) -> None:
        weather = self.settings.weather
        due = sorted([(at, "crash") for at in weather.kills] + [(at, "stop") for at in weather.drains])
        for at, what in due:
            await sleep(max(0.0, at - elapsed()))
            fleet = list(self._fleet.values())
            # Where nothing is swept up it is the death of an outbox that shows something.
            victim = self._rng.choice([one for one in fleet if one.spared] or fleet)
            if what == "crash":
                victim.crash("killed")
            else:
                victim.stop()

    async def _come_to_rest(self) -> None:
        deadline = true_time() + _PATIENCE_SECONDS
        storm = self.storm
        while true_time() < deadline and (
            storm.under_way or storm.unanswered or self.outbox or self._waiting()
        ):
            await sleep(_LOOK_SECONDS)
        # What was read last has still to be looked back on, and told.
        await sleep(2 * self.settings.refresh_seconds + 1.0)

    def _waiting(self) -> list[str]:
        return [
            body for name in ("ingress", "fast", "slow") for body in self.bodies(getattr(self.names, name))
        ]

    def _take_stock(self) -> None:
        history, names = self.history, self.names
        history.stuck = self._waiting()
        history.queues = {queue.arn for queue in self.queues.queues.values()}
        for queue in (names.ingress, names.fast, names.slow):
            for held in self.queues.queues[self.queue(names.dlq(queue))].messages.values():
                history.dead_letters.append(held.message.body)
        history.unpublished = [str(sk) for _, sk in self.outbox]
        for place, row in self.outbox.ever.items():
            history.rows[str(place[0]), str(place[1])] = msgspec.json.decode(str(row["body"]))

    # What workers are given
    def wire(self, process: Process, config: Any, worker: Worker) -> None:
        """Put a worker together as its service does."""
        if process.service == "outbox":
            wire_outbox(self, process, process.aws(), config, worker)
        else:
            WIRINGS[process.service](process.aws(), config, worker)

    # What is seen
    def note(self, who: str, what: str, detail: str) -> None:
        self.history.trace.append((elapsed(), who, what, detail, ""))

    def broke(self, who: str, what: str) -> None:
        self.note(who, "broke", what)
        self.history.broken.append(f"{who} {what}")

    def received(self, who: Process, message: Any) -> None:
        if who.service == "shield":
            return
        body = msgspec.json.decode(message.body)
        command = body if who.service == "fast" else body["command"]
        self._received.setdefault((who.id, command["id"]), true_time())
        pair = (command["target"], command["name"])
        taken = Taken(
            true_time(), who.id, message.id, message.receive_count, command["id"], command["source"], pair
        )
        self.history.taken.append(taken)

    def deleted(self, who: Process, message_id: str) -> None:
        self.history.deleted.append(Deleted(true_time(), who.id, message_id))

    def queued(self, who: Process, queue: str, held: Any, begun: float) -> None:
        """A worker put a message in a queue: a target's, another worker's, or one for the dead."""
        history, now, text = self.history, true_time(), held.message.body
        if "/target-" in queue:
            body = msgspec.json.decode(text)
            received = self._received[who.id, body["metadata"]["id"]]
            target = queue.rpartition("/")[2]
            history.deliveries.append(
                Delivery(now, received, begun, who.id, target, body, self._left_at(body["command"]))
            )
        elif queue == self._fast_queue:
            body = msgspec.json.decode(text)
            history.passed.append(Passed(held.id, body["id"], body["source"], body["received_at"]))
        elif queue == self._slow_queue:
            history.escalations.append(Escalation(now, who.id, held.id, text))
        else:
            history.buried.append(Buried(now, who.service, text))

    def _left_at(self, command: dict[str, Any]) -> bytes | None:
        ref = command.get("payload_ref")
        found = ref and self.objects.buckets.get(ref["bucket"], {}).get(ref["key"])
        return found and found.body

    def changed(self, writes: Any) -> None:
        """A change of the registry was committed."""
        for write in writes:
            item = getattr(write, "item", None)
            if item is not None and write.table == self.names.changelog:
                key = (item["row_pk"], item["row_sk"])
                entry = None if item["after"] is None else decode_entry(*key, item["after"])
                self.history.registry.note(true_time(), key, entry)
                if isinstance(entry, Ban):
                    self.history.bans.append(BanPlaced(true_time(), item["actor"], entry))
                self.note("registry", f"change {item['seq']}", f"{key[0]} {key[1]} {item['after'] and ''}")

    def wrote(self, who: Process, table: str, items: Any) -> None:
        if table == self.names.outbox:
            for item in items:
                self.history.written.append(Written(true_time(), who.id, msgspec.json.decode(item["body"])))

    def read(
        self, who: Process, table: str, partition: Any, began: float, *, first: bool, last: bool
    ) -> None:
        """A page of the changelog was read; it has been read when its last page has."""
        if table == self.names.changelog and partition == ("pk", "log"):
            if first:
                self._reading[who.id] = began
            if last:
                self.history.reads.setdefault(who.id, []).append(self._reading[who.id])


class _Overridden:
    """A port with some methods replaced."""

    def __init__(self, port: Any, **methods: Any) -> None:
        self._port = port
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


def simulate(seed: int, trace: list[tuple[Any, ...]]) -> History:
    """Run one seed to its end. What happens is added to `trace`, which tells it even where the run raises."""
    settings = draw_settings(random.Random(f"{seed}/settings"))
    plan = draw_plan(random.Random(f"{seed}/plan"), settings)

    async def main() -> History:
        return await SimulatedWorld(seed, settings, plan, trace).run()

    return seeding.run(seed, main())
