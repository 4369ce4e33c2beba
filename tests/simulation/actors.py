"""Tenants and operators: they perform the steps of a plan, and what they do is on the record."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import msgspec
from simulation.history import OPERATOR, Sent
from simulation.virtual_loop import sleep, true_time
from simulation.workload import SCHEMA, SOURCES, Plan, Step, encode

from snavio.aws.values import Outgoing
from snavio.domain.models import Ban, DedupeMode, Quota, Route, Settings
from snavio.domain.screening import REPLAYER
from snavio.wire.times import format_time, parse_time

if TYPE_CHECKING:
    from simulation.world import SimulatedWorld

_LATEST_ARRIVAL_SECONDS = 4.0


class Actors:
    """Everyone outside the platform. Only the bus fails them: it is the platform that is on trial."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._routes: dict[tuple[str, str], Route] = {}
        self._versions: dict[str, list[str]] = {}
        self._first: dict[str, Sent] = {}
        self._bus = random.Random(f"{world.seed}/bus")
        self._on_the_bus: list[asyncio.Task[None]] = []

    async def register(self, plan: Plan) -> None:
        """What stands before the first worker starts."""
        world = self._world
        for source in (*SOURCES, REPLAYER):
            await world.service(source)
            self._versions[source] = ["hmac-v1"]
        for fields in plan.routes:
            await self._register_route(dict(fields))
        for fields in plan.grants:
            await world.grant(**fields)

    async def _register_route(self, fields: dict[str, Any]) -> None:
        world = self._world
        name = f"target-{fields['target']}-{fields['command']}"
        arn = world.queues.create(name).arn
        if fields.pop("gone", False):
            arn += "-gone"
        route = Route(queue_arn=arn, **fields)
        self._routes[route.target, route.command] = route
        await world.store.put_route(route, actor=OPERATOR)

    async def perform(self, step: Step) -> None:
        """Do one step."""
        await getattr(self, f"_{step.action}")(**step.arguments)

    # Tenants
    async def _put(
        self,
        *,
        kind: str,
        source: str,
        target: str,
        command: str,
        id: str,  # noqa: A002 - the word of the wire
        payload: Any,
        roll: float,
        legacy: bool,
    ) -> None:
        versions = self._versions[source]
        version_id = versions[-2] if legacy and len(versions) > 1 else versions[-1]
        sent = Sent(kind, "", source, target, command, id, version_id, true_time(), payload)
        metadata: dict[str, Any] = {"id": id}
        match kind:
            case "forged":
                metadata["signed_by"] = "nobody/knows"
                sent.authentic = False
            case "old" | "future":
                offset = (1 if kind == "future" else -1) * self._world.settings.replay_window_seconds
                sent.timestamp = true_time() + offset * (0.9 + 0.2 * roll)
            case "replay" | "false-replay":
                genuine = kind == "replay"
                metadata |= {
                    "replayed": True,
                    "replay_id": "r-1",
                    "signed_by": REPLAYER if genuine else source,
                }
                sent.replay, sent.authentic = True, genuine
                if genuine:
                    sent.version_id = self._versions[REPLAYER][-1]
            case "stranger":
                sent.source = "umbrella/lab"
                metadata["signed_by"] = source
                sent.authentic = False
            case "nowhere":
                sent.target = "void"
            case _:
                pass
        await self._emit(sent, metadata, roll)

    async def _emit(self, sent: Sent, metadata: dict[str, Any], roll: float) -> None:
        # What is written on the wire has milliseconds; the checkers read it as it was written.
        text = format_time(sent.timestamp)
        sent.timestamp = parse_time(text) or 0.0
        event = self._world.command(
            sent.source,
            sent.target,
            sent.command,
            sent.payload,
            version_id=sent.version_id,
            timestamp=text,
            **metadata,
        )
        if sent.kind == "altered":
            event["detail"]["command"]["payload"] = sent.payload = {"n": -1}
            sent.authentic = False
        if sent.kind == "broken":
            part, field = (("metadata", "hmac"), ("command", "target"), ("metadata", "timestamp"))[
                int(roll * 3)
            ]
            del event["detail"][part][field]
            sent.authentic = False
        sent.body = encode(event)
        if sent.kind == "malformed":
            # Something is left of it: an empty message is refused by the queue and never arrives.
            sent.body = sent.body[: max(1, int(len(sent.body) * roll))]
            sent.authentic = False
        self._first[sent.id] = sent
        await self._carry(sent)
        # The bus delivers at least once as well.
        if roll < 0.03:
            await self._carry(_copy(sent))

    async def _again(self, *, first: str) -> None:
        """The same bytes once more: a producer that was not answered, or someone who listened."""
        await self._carry(_copy(self._first[first]))

    async def _carry(self, sent: Sent) -> None:
        """Over the bus: mostly at once, sometimes so late that later ones overtake, and perhaps more than once."""
        first, *later = self._arrivals()
        for delay in later:
            self._arrive_after(delay, _copy(sent))
        if first:
            self._arrive_after(first, sent)
        else:
            await self._arrive(sent)

    def _arrivals(self) -> list[float]:
        """After how long it arrives, each time that it does: its producer tries until the bus says that it took it."""
        bus, weather = self._bus, self._world.settings.weather
        tried, arrivals = 0.0, list[float]()
        while True:
            held_back = bus.uniform(0.0, _LATEST_ARRIVAL_SECONDS) if bus.random() < weather.delayed else 0.0
            roll = bus.random() - weather.turned_away
            if roll >= 0.0:
                arrivals.append(tried + held_back)
            if roll >= weather.unheard:
                return arrivals
            tried += bus.uniform(0.05, 1.0)

    def _arrive_after(self, delay: float, sent: Sent) -> None:
        async def arrive_late() -> None:
            await sleep(delay)
            await self._arrive(sent)

        self._on_the_bus.append(asyncio.get_running_loop().create_task(arrive_late()))

    async def all_arrived(self) -> None:
        """Wait for what the bus holds back."""
        await asyncio.gather(*self._on_the_bus)

    async def _arrive(self, sent: Sent) -> None:
        world = self._world
        queue = world.queues.queues[world.queue(world.names.ingress)]
        await world.queues.send(queue.url, [Outgoing(sent.body)])
        held = next(reversed(queue.messages.values()))
        sent.arrived_at, sent.message_id = held.sent_at, held.id
        world.history.sent.append(sent)
        world.note("tenant", f"put {sent.kind}", f"{sent.id} {sent.source} {sent.target} {sent.command}")

    # Operators
    async def _grant(self, *, source: str, target: str, command: str) -> None:
        await self._world.grant(source, target, command)

    async def _revoke(self, *, source: str, target: str, command: str) -> None:
        await self._world.revoke(source, target, command)

    async def _reroute(self, *, target: str, command: str, how: str, limit: Any, sensitivity: Any) -> None:
        world, route = self._world, self._routes[target, command]
        change: dict[str, Any] = {}
        match how:
            case "remove":
                await world.store.delete_route(target, command, actor=OPERATOR)
                return
            case "move":
                change["queue_arn"] = world.queues.create(f"target-{target}-{command}-moved").arn
            case "limit":
                # A strict route is checked for what strict promises, a limited one for its limit.
                if route.dedupe_mode is not DedupeMode.STRICT:
                    change["rate_limit"] = limit
            case "profile":
                change["sensitivity"] = sensitivity
            case _:
                change["schema"] = None if route.schema else SCHEMA
        self._routes[target, command] = msgspec.structs.replace(route, **change)
        await world.store.put_route(self._routes[target, command], actor=OPERATOR)

    async def _restore(self, *, target: str, command: str) -> None:
        await self._world.store.put_route(self._routes[target, command], actor=OPERATOR)

    async def _key(self, *, source: str, how: str, grace: float) -> None:
        world = self._world
        current = self._versions[source][-1]
        [key] = [one for one in await world.store.keys(source) if one.version_id == current]
        if how == "rotate":
            version_id = f"hmac-v{len(self._versions[source]) + 1}"
            self._versions[source].append(version_id)
            await world.service(source, version_id)
        if how == "delete":
            # An operator takes away a key that leaked, and hands out another.
            await world.store.delete_key(key, actor=OPERATOR)
            version_id = f"hmac-v{len(self._versions[source]) + 1}"
            self._versions[source].append(version_id)
            await world.service(source, version_id)
            return
        ending = msgspec.structs.replace(key, not_after=true_time() + grace)
        await world.store.put_key(ending, actor=OPERATOR)

    async def _ban(self, *, source: str, mode: Any, target: Any, command: Any, seconds: Any) -> None:
        until = None if seconds is None else true_time() + seconds
        ban = Ban(source=source, mode=mode, target=target, command=command, until=until)
        await self._world.store.put_ban(ban, actor=OPERATOR)

    async def _lift(self, *, source: str, target: Any, command: Any) -> None:
        await self._world.store.lift_ban(source, target, command, actor=OPERATOR)

    async def _quota(self, *, source: str, target: str, command: str, limit: Any) -> None:
        # Looked at only while the source is off the warm path.
        quota = Quota(source=source, target=target, command=command, rate_limit=limit)
        await self._world.store.put_quota(quota, actor=OPERATOR)

    async def _mode(self, *, mode: Any) -> None:
        await self._world.store.put_settings(Settings(dispatch_mode=mode), actor=OPERATOR)


def _copy(sent: Sent) -> Sent:
    return Sent(**{name: getattr(sent, name) for name in Sent.__slots__})
