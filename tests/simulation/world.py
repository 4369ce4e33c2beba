"""One simulated run: the fakes, the fleet of real workers, the plan performed, the faults ended, the history taken."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import msgspec
from dispatch_world import World
from simulation import virtual_loop
from simulation.actors import Actors
from simulation.faults import Storm
from simulation.history import Delivery, History, Taken, Written
from simulation.processes import WIRINGS, Process
from simulation.virtual_loop import true_time
from simulation.weather import Settings, draw_settings
from simulation.workload import Plan, draw_plan

from snavio.registry.rows import decode_entry

if TYPE_CHECKING:
    from snavio.runtime.worker import Worker

_PATIENCE_SECONDS = 400.0
"""How long after the last fault everything may take to come to rest."""
_LOOK_SECONDS = 0.5


class SimulatedWorld(World):
    """The in-memory world of the dispatch tests on a virtual clock, with weather."""

    def __init__(self, seed: int, settings: Settings, plan: Plan) -> None:
        super().__init__(true_time)
        self.seed = seed
        self.settings = settings
        self.plan = plan
        self.history = History(settings)
        self.storm = Storm(settings.weather, random.Random(f"{seed}/weather"), self.history.trace)
        self._rng = random.Random(f"{seed}/world")
        self._actors = Actors(self)
        self._fleet: dict[str, Process] = {}
        self._started = 0
        self._closing = False
        self._received: dict[tuple[str, str], float] = {}
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
            for service in WIRINGS
            for slot in range(getattr(self.settings, f"{service}s"))
        ]
        disasters = asyncio.create_task(self._disasters())
        started = true_time()
        for step in self.plan.steps:
            await asyncio.sleep(max(0.0, started + step.at - true_time()))
            self.note("actor", step.action, "")
            await self._actors.perform(step)
        await disasters
        await asyncio.sleep(max(0.0, started + self.settings.busy_seconds - true_time()))
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
                await asyncio.sleep(self._rng.uniform(0.05, 2.0))

    async def _disasters(self) -> None:
        weather = self.settings.weather
        due = sorted([(at, "crash") for at in weather.kills] + [(at, "stop") for at in weather.drains])
        for at, what in due:
            await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))
            victim = self._rng.choice(list(self._fleet.values()))
            if what == "crash":
                victim.crash("killed")
            else:
                victim.stop()

    async def _come_to_rest(self) -> None:
        deadline = true_time() + _PATIENCE_SECONDS
        while true_time() < deadline and (self._waiting() or self.storm.under_way):  # noqa: ASYNC110 - nobody would tell
            await asyncio.sleep(_LOOK_SECONDS)
        # What was read last has still to be looked back on, and told.
        await asyncio.sleep(2 * self.settings.refresh_seconds + 1.0)

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
        for place, row in self.tables.tables[names.outbox].items.items():
            history.rows[str(place[0]), str(place[1])] = msgspec.json.decode(str(row["body"]))

    # What workers are given
    def wire(self, process: Process, config: Any, worker: Worker) -> None:
        """Put a worker together as its service does."""
        WIRINGS[process.service](process.aws(), config, worker)

    # What is seen
    def note(self, who: str, what: str, detail: str) -> None:
        self.history.trace.append((asyncio.get_running_loop().time(), who, what, detail, ""))

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
            self.history.taken.append(Taken(true_time(), who.id, command["source"], pair))

    def delivered(self, who: Process, queue: str, messages: Any, answers: Any, began: float) -> None:
        if "/target-" not in queue:
            return
        for message, answer in zip(messages, answers, strict=True):
            if answer is None:
                body = msgspec.json.decode(message.body)
                received = self._received[who.id, body["metadata"]["id"]]
                self.history.deliveries.append(
                    Delivery(true_time(), received, began, who.id, queue.rpartition("/")[2], body)
                )

    def changed(self, writes: Any) -> None:
        """A change of the registry was committed."""
        for write in writes:
            item = getattr(write, "item", None)
            if item is not None and write.table == self.names.changelog:
                key = (item["row_pk"], item["row_sk"])
                entry = None if item["after"] is None else decode_entry(*key, item["after"])
                self.history.registry.note(true_time(), key, entry)
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


def simulate(seed: int) -> History:
    """Run one seed to its end."""
    settings = draw_settings(random.Random(f"{seed}/settings"))
    plan = draw_plan(random.Random(f"{seed}/plan"), settings)

    async def main() -> History:
        return await SimulatedWorld(seed, settings, plan).run()

    return virtual_loop.run(seed, main())
