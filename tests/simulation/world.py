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
from simulation.history import BanPlaced, Delivery, Escalation, History, Taken, Written
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
        self.tables.create(self.names.leases, key=("pk",))
        for table in (self.names.alerts, self.names.control):
            self.tables.create(table, key=("pk", "sk"))
        self.shard_log = ShardLog(random.Random(f"{seed}/stream"))
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
            victim = self._rng.choice(list(self._fleet.values()))
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
        for queue in (names.ingress, names.fast, names.slow):
            for held in self.queues.queues[self.queue(names.dlq(queue))].messages.values():
                history.dead_letters.append(held.message.body)
                if held.message.attributes.get("snavio.reason") == "delivery-failure":
                    history.parked.add(held.message.body)
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
        if who.service == "fast":
            pair = (command["target"], command["name"])
            self.history.taken.append(Taken(true_time(), who.id, command["id"], command["source"], pair))

    def queued(self, who: Process, queue: str, messages: Any, answers: Any) -> None:
        """A worker put messages in a queue: a target's, or another worker's."""
        is_escalated = who.service == "fast" and queue == self.queue(self.names.slow)
        is_delivered = "/target-" in queue
        if not is_escalated and not is_delivered:
            return
        for message, fault in zip(messages, answers, strict=True):
            if fault is not None:
                continue
            body = msgspec.json.decode(message.body)
            if is_escalated:
                self.history.escalations.append(Escalation(true_time(), who.id, body))
            else:
                received = self._received[who.id, body["metadata"]["id"]]
                self.history.deliveries.append(
                    Delivery(true_time(), received, who.id, queue.rpartition("/")[2], body)
                )

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

    def read(self, who: Process, table: str, partition: Any, began: float) -> None:
        if table == self.names.changelog and partition == ("pk", "log"):
            self.history.reads.setdefault(who.id, []).append(began)


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
