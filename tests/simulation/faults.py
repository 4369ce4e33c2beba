"""Between a worker and the world: every call is carried through the weather, and none once its worker is dead.

The ports behind are the in-memory fakes that pass the contract suite of the real adapters; what is added here is only
what a network and a crowded service add.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from simulation.virtual_loop import elapsed, sleep, true_time

from snavio.aws.errors import Refused, SnavioError, Transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from simulation.processes import Process
    from simulation.weather import Weather

T = TypeVar("T")

_LATEST_SECONDS = 9.0


class Dead(BaseException):
    """What a dead worker's call meets: nothing of its reaches the world any more."""


class Fate(StrEnum):
    """What the weather does to one call."""

    WELL = "ok"
    REFUSED = "refused"
    LOST = "lost"
    UNANSWERED = "unanswered"
    LATE = "late"
    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"


class Storm:
    """Carries calls, one random number after another."""

    def __init__(self, weather: Weather, rng: Random, trace: list[tuple[Any, ...]]) -> None:
        self.weather = weather
        self.rng = rng
        self.calm = False
        self.trace = trace
        self.under_way: set[asyncio.Task[Any]] = set()
        """Calls whose callers have given up and that act all the same."""
        self.unanswered = 0
        """Calls made before the calm that have not been answered: an answer may bring what is in no queue any more."""

    async def carry(self, who: Process, what: str, place: str, act: Callable[[], Awaitable[T]]) -> T:
        """Make one call; raises what its caller sees."""
        who.must_live()
        fate, before, after = self._forecast(who, what, place)
        stormy = not self.calm
        self.unanswered += stormy
        try:
            if before:
                await sleep(before)
                who.must_live()
            if fate is Fate.REFUSED:
                raise Refused("throttled")
            if fate is Fate.LOST:
                raise Transient("no answer")
            if fate is Fate.LATE:
                self._later(who, what, place, act)
                raise Transient("no answer")
            if fate is Fate.CRASH_BEFORE:
                who.crash(f"before {what} {place}")
                raise Dead
            failure: SnavioError | None = None
            try:
                answer = await act()
            except SnavioError as error:
                # What happens to an answer happens to this one as well.
                answer, failure = None, error
            if fate is Fate.CRASH_AFTER:
                who.crash(f"after {what} {place}")
                raise Dead
            if after:
                await sleep(after)
            who.must_live()
            if fate is Fate.UNANSWERED:
                raise Transient("no answer")
            if failure is not None:
                raise failure
        except SnavioError as error:
            self._note(who, what, place, f"{fate} {type(error).__name__}")
            raise
        finally:
            self.unanswered -= stormy
        self._note(who, what, place, fate)
        return answer

    def part(self, who: Process, count: int) -> list[bool]:
        """Which entries of a batch are acted on."""
        if self.calm or who.spared or self.rng.random() >= self.weather.partial:
            return [True] * count
        return [self.rng.random() < 0.6 for _ in range(count)]

    @staticmethod
    def refusal() -> Refused:
        """What the entry of a batch hears that was not acted on."""
        return Refused("throttled")

    def strikes(self, chance: float) -> bool:
        """Whether a fault of this chance happens."""
        return not self.calm and chance > 0 and self.rng.random() < chance

    def _forecast(self, who: Process, what: str, place: str) -> tuple[Fate, float, float]:
        weather, rng = self.weather, self.rng
        port = what.partition(".")[0]
        if self.calm or (who.spared and port != "stream"):
            return Fate.WELL, 0.0, 0.0
        now = elapsed()
        for outage in weather.outages:
            if outage.start <= now < outage.end and (outage.what == port or outage.what in place):
                return Fate.REFUSED, 0.0, 0.0
        before, after = weather.latency * rng.random(), weather.latency * rng.random()
        if rng.random() < weather.slow:
            delay = rng.uniform(0.2, _LATEST_SECONDS)
            before, after = (delay, after) if rng.random() < 0.5 else (before, delay)
        roll = rng.random()
        for fate, chance in (
            (Fate.REFUSED, weather.refused),
            (Fate.LOST, weather.lost),
            (Fate.UNANSWERED, weather.unanswered),
            (Fate.LATE, weather.late),
            (Fate.CRASH_BEFORE, weather.crash / 2),
            (Fate.CRASH_AFTER, weather.crash / 2),
        ):
            if roll < chance:
                return fate, before, after
            roll -= chance
        return Fate.WELL, before, after

    def _later(self, who: Process, what: str, place: str, act: Callable[[], Awaitable[Any]]) -> None:
        delay = self.rng.uniform(0.05, _LATEST_SECONDS)

        async def act_late() -> None:
            await sleep(delay)
            try:
                await act()
            except SnavioError as error:
                self._note(who, what, place, f"acted late, in vain: {type(error).__name__}")
            else:
                self._note(who, what, place, "acted late")

        task = asyncio.get_running_loop().create_task(act_late())
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)

    def _note(self, who: Process, what: str, place: str, outcome: str) -> None:
        self.trace.append((elapsed(), who.id, what, place, str(outcome)))


def _name(url_or_name: str) -> str:
    return url_or_name.rstrip("/").rpartition("/")[2]


class StormyQueues:
    """`Queues` as one worker reaches them."""

    def __init__(self, world: Any, who: Process) -> None:
        self._world = world
        self._queues = world.queues
        self._storm: Storm = world.storm
        self._who = who

    def url_of(self, arn: str) -> str:
        return self._queues.url_of(arn)

    async def receive(self, queue: str, **options: Any) -> list[Any]:
        def act() -> Awaitable[list[Any]]:
            return self._queues.receive(queue, **options)

        messages = await self._storm.carry(self._who, "queues.receive", _name(queue), act)
        held_by = self._queues.queues[queue]
        for message in messages:
            self._world.received(self._who, message)
            held = held_by.messages.get(message.id)
            if held is not None and self._storm.strikes(self._storm.weather.doubled):
                # At least once: another may get it as well, and then this receipt is good no more.
                held_by.hide(held, true_time() + self._storm.rng.uniform(0.0, 1.0))
                self._queues.wake()
        return messages

    def send(self, queue: str, messages: Sequence[Any]) -> Awaitable[list[Any]]:
        taken = self._storm.part(self._who, len(messages))
        begun = true_time()

        def act() -> Awaitable[list[Any]]:
            return self._in_part(taken, messages, lambda some: self._sent(queue, some, begun))

        return self._storm.carry(self._who, "queues.send", _name(queue), act)

    def delete(self, queue: str, receipts: Sequence[str]) -> Awaitable[list[Any]]:
        taken = self._storm.part(self._who, len(receipts))

        def act() -> Awaitable[list[Any]]:
            return self._in_part(taken, receipts, lambda some: self._deleted(queue, some))

        return self._storm.carry(self._who, "queues.delete", _name(queue), act)

    def set_visibility(self, queue: str, timeouts: Sequence[tuple[str, int]]) -> Awaitable[list[Any]]:
        taken = self._storm.part(self._who, len(timeouts))

        def act() -> Awaitable[list[Any]]:
            return self._in_part(taken, timeouts, lambda some: self._queues.set_visibility(queue, some))

        return self._storm.carry(self._who, "queues.set_visibility", _name(queue), act)

    async def _sent(self, queue: str, messages: list[Any], begun: float) -> list[Any]:
        answers = await self._queues.send(queue, messages)
        held_by, storm = self._queues.queues[queue], self._storm
        # Nothing has happened since they were added: they are the last.
        added = list(islice(reversed(held_by.messages.values()), answers.count(None)))
        for held in reversed(added):
            self._world.queued(self._who, queue, held, begun)
            if storm.strikes(storm.weather.shuffled):
                held_by.hide(held, true_time() + storm.rng.uniform(0.0, 1.5))
        return answers

    async def _deleted(self, queue: str, receipts: list[str]) -> list[Any]:
        held_by, storm = self._queues.queues[queue], self._storm
        held = [held_by.holder_of(receipt) for receipt in receipts]
        answers = await self._queues.delete(queue, receipts)
        for one, fault in zip(held, answers, strict=True):
            if one is None or fault is not None:
                continue
            self._world.deleted(self._who, one.id)
            if storm.strikes(storm.weather.undeleted):
                # A copy of it lay where the delete did not reach.
                one.receipt, one.visible_at = None, true_time() + storm.rng.uniform(0.0, 3.0)
                held_by.add(one)
                held_by.wake()
        return answers

    @staticmethod
    async def _in_part(
        taken: list[bool], entries: Sequence[Any], act: Callable[[list[Any]], Any]
    ) -> list[Any]:
        some = [entry for entry, is_taken in zip(entries, taken, strict=True) if is_taken]
        answers = iter(await act(some) if some else [])
        return [next(answers) if is_taken else Storm.refusal() for is_taken in taken]


class StormyTables:
    """`Tables` as one worker reaches them."""

    def __init__(self, world: Any, who: Process) -> None:
        self._world = world
        self._tables = world.tables
        self._storm: Storm = world.storm
        self._who = who

    def get(self, table: str, key: Any, **options: Any) -> Awaitable[Any]:
        return self._carry("get", table, lambda: self._tables.get(table, key, **options))

    def put(self, table: str, item: Any, **options: Any) -> Awaitable[None]:
        return self._carry("put", table, lambda: self._tables.put(table, item, **options))

    def update(self, table: str, key: Any, change: Any, **options: Any) -> Awaitable[Any]:
        return self._carry("update", table, lambda: self._tables.update(table, key, change, **options))

    def delete(self, table: str, key: Any, **options: Any) -> Awaitable[None]:
        return self._carry("delete", table, lambda: self._tables.delete(table, key, **options))

    def transact(self, writes: Sequence[Any], **options: Any) -> Awaitable[None]:
        async def act() -> None:
            await self._tables.transact(writes, **options)
            self._world.changed(writes)

        return self._carry("transact", writes[0].table, act)

    def put_batch(self, table: str, items: Sequence[Any]) -> Awaitable[list[Any]]:
        taken = self._storm.part(self._who, len(items))

        async def act() -> list[Any]:
            some = [item for item, is_taken in zip(items, taken, strict=True) if is_taken]
            left = await self._tables.put_batch(table, some) if some else []
            self._world.wrote(self._who, table, some)
            return [*left, *(item for item, is_taken in zip(items, taken, strict=True) if not is_taken)]

        return self._carry("put_batch", table, act)

    async def query(self, table: str, partition: Any, **options: Any) -> Any:
        began = true_time()
        if table == self._world.names.changelog:
            # A page may be as short as the table likes; who reads on has read only with the last.
            options["limit"] = options.get("limit") or self._world.settings.page_items
        page = await self._carry("query", table, lambda: self._tables.query(table, partition, **options))
        first, last = options.get("cursor") is None, page.cursor is None
        self._world.read(self._who, table, partition, began, first=first, last=last)
        return page

    async def scan(self, table: str, **options: Any) -> Any:
        pages = await self._carry("scan", table, lambda: _all(self._tables.scan(table, **options)))
        for page in pages:
            yield page

    def _carry(self, name: str, table: str, act: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        # No coroutine of its own: each would be passed through every time the call goes on.
        return self._storm.carry(self._who, f"tables.{name}", table, act)


class StormyPort:
    """Any other port as one worker reaches it: whole calls only."""

    def __init__(self, world: Any, who: Process, port: Any, label: str) -> None:
        self._storm: Storm = world.storm
        self._who = who
        self._port = port
        self._label = label

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def carried(*args: Any, **kwargs: Any) -> Awaitable[Any]:
            return self._storm.carry(
                self._who, f"{self._label}.{name}", self._label, lambda: method(*args, **kwargs)
            )

        return carried


async def _all(pages: Any) -> list[Any]:
    return [page async for page in pages]
