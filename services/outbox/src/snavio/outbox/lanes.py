"""One lane a tenant: rows gather for a moment, go out in batches, and what fails is tried again alone.

A lane is bounded and keeps its troubles to itself. When it is full, or its topic is broken, rows are left in the table
for the sweeper at once; calls for topics that last failed share a few slots of their own.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.aws.errors import Permanent, Transient
from snavio.outbox.batching import MAX_ROWS, next_batch
from snavio.outbox.values import Fate, RowKey, StoredRow
from snavio.runtime import metrics
from snavio.runtime.backoff import backoff_seconds
from snavio.runtime.bell import Bell
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from snavio.aws.values import Fault
    from snavio.outbox.failures import Failures
    from snavio.outbox.ports import Topics
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry


def _always() -> bool:
    return True


class Parcel(msgspec.Struct):
    """A row in hand, and whom to tell what became of it."""

    row: StoredRow
    done: Callable[[Fate], None]
    wanted: Callable[[], bool]
    offered_at: float


class LaneSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How lanes behave."""

    linger_seconds: float = 1.0
    """How long a row may wait for others of its tenant."""
    rows_per_tenant: int = 2_000
    """Rows one tenant may have in hand; more are left for the sweeper."""
    sends_per_tenant: int = 4
    sends: int = 16
    """Calls under way for topics that work."""
    ailing_sends: int = 4
    """Calls under way for topics that last failed."""
    call_seconds: float = 10.0
    attempts: int = 5
    backoff_base_seconds: float = 0.2
    backoff_cap_seconds: float = 5.0
    shut_cap_seconds: float = 60.0
    """The longest a broken topic is left alone before it is tried again."""


class _Lane:
    __slots__ = ("bell", "sending", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Parcel] = deque()
        self.sending = 0
        self.bell = Bell()


class _Trouble(msgspec.Struct):
    """What is remembered of a topic that failed, until it works again."""

    strikes: int = 0
    shut_until: float = 0.0


class Lanes:
    """Publishes rows, and removes what was published before anything else is sent in its place.

    So what a worker can have published without having removed it, and would be repeated if it died, is what its slots
    hold.
    """

    def __init__(
        self,
        topics: Topics,
        remove: Callable[[Sequence[RowKey]], Awaitable[None]],
        failures: Failures,
        *,
        log: Log,
        settings: LaneSettings | None = None,
        telemetry: Telemetry = SILENT,
        now: Callable[[], float] = time.time,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._topics = topics
        self._remove = remove
        self._failures = failures
        self._log = log
        self._settings = settings or LaneSettings()
        self._telemetry = telemetry
        self._now = now
        self._roll = roll
        self._lanes: dict[str, _Lane] = {}
        self._trouble: dict[str, _Trouble] = {}
        self._in_hand: dict[str, set[RowKey]] = {}
        self._sends = anyio.CapacityLimiter(self._settings.sends)
        self._ailing_sends = anyio.CapacityLimiter(self._settings.ailing_sends)
        self._tasks: TaskGroup | None = None
        self._settled = Bell()
        self._flushing = False
        self.pending = 0

    async def run(self) -> None:
        """Publish what is offered, until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for tenant, lane in list(self._lanes.items()):
                tasks.start_soon(self._drive, tenant, lane)
            await anyio.sleep_forever()

    def offer(
        self, row: StoredRow, done: Callable[[Fate], None], *, wanted: Callable[[], bool] = _always
    ) -> None:
        """Take a row in, or leave it at once; `done` hears what became of it, perhaps before this returns.

        A row no longer `wanted` when its turn comes is left: whoever has its shard by then will publish it.
        """
        held = self._in_hand.get(row.tenant)
        if not self.open(row.tenant) or (held is not None and row.key in held):
            done(Fate.LEFT)
            return
        if held is not None and len(held) >= self._settings.rows_per_tenant:
            self._telemetry.measure(metrics.OUTBOX_FAILED, 1, reason="lane-full")
            done(Fate.LEFT)
            return
        self._in_hand.setdefault(row.tenant, set()).add(row.key)
        self.pending += 1
        parcel = Parcel(row, done, wanted, anyio.current_time())
        lane = self._lanes.get(row.tenant)
        if lane is None:
            lane = self._lanes[row.tenant] = _Lane()
            if self._tasks is not None:
                self._tasks.start_soon(self._drive, row.tenant, lane)
        lane.waiting.append(parcel)
        lane.bell.ring()

    def open(self, tenant: str) -> bool:
        """Whether a row of the tenant would be tried now, room permitting."""
        trouble = self._trouble.get(tenant)
        return trouble is None or trouble.shut_until <= self._now()

    async def room(self, tenant: str) -> bool:
        """Wait for room in a working tenant's lane; False at once for one that is failing."""
        while tenant not in self._trouble:
            if len(self._in_hand.get(tenant, ())) < self._settings.rows_per_tenant:
                return True
            await self._settled.wait()
        return self.open(tenant) and len(self._in_hand.get(tenant, ())) < self._settings.rows_per_tenant

    async def below(self, limit: int) -> None:
        """Return once fewer rows than this are in hand."""
        while self.pending >= limit:
            await self._settled.wait()

    async def flush(self) -> None:
        """Send without waiting for company, from now on; return once nothing is in hand."""
        self._flushing = True
        for lane in self._lanes.values():
            lane.bell.ring()
        await self.below(1)

    def _finish(self, parcels: Sequence[Parcel], fate: Fate) -> None:
        """Tell what became of parcels; they are no longer in hand."""
        for parcel in parcels:
            held = self._in_hand[parcel.row.tenant]
            held.discard(parcel.row.key)
            if not held:
                del self._in_hand[parcel.row.tenant]
            self.pending -= 1
            parcel.done(fate)
        self._settled.ring()

    async def _drive(self, tenant: str, lane: _Lane) -> None:
        async with anyio.create_task_group() as sends:
            while lane.waiting or lane.sending:
                if not lane.waiting or lane.sending >= self._lane_width(tenant):
                    await lane.bell.wait()
                    continue
                await self._gather(lane)
                self._leave_unwanted(lane)
                count = next_batch(parcel.row for parcel in lane.waiting)
                batch = [lane.waiting.popleft() for _ in range(count)]
                if batch:
                    lane.sending += 1
                    sends.start_soon(self._send, tenant, lane, batch)
            # Before leaving the group, which yields: from here on an offer opens a new lane.
            del self._lanes[tenant]

    def _leave_unwanted(self, lane: _Lane) -> None:
        unwanted = [parcel for parcel in lane.waiting if not parcel.wanted()]
        if unwanted:
            lane.waiting = deque(parcel for parcel in lane.waiting if parcel.wanted())
            self._finish(unwanted, Fate.LEFT)

    def _lane_width(self, tenant: str) -> int:
        return 1 if tenant in self._trouble else self._settings.sends_per_tenant

    async def _gather(self, lane: _Lane) -> None:
        waited = anyio.current_time() - lane.waiting[0].offered_at
        with anyio.move_on_after(self._settings.linger_seconds - waited):
            while 0 < len(lane.waiting) < MAX_ROWS and not self._flushing:
                await lane.bell.wait()

    async def _send(self, tenant: str, lane: _Lane, batch: list[Parcel]) -> None:
        try:
            for attempt in range(1, self._settings.attempts + 1):
                batch = await self._try(tenant, batch)
                if not batch:
                    return
                if attempt < self._settings.attempts:
                    await anyio.sleep(self._pause(attempt))
            self._failures.note(tenant, "unavailable", len(batch))
            self._finish(batch, Fate.LEFT)
        finally:
            lane.sending -= 1
            lane.bell.ring()

    def _pause(self, attempt: int) -> float:
        settings = self._settings
        return backoff_seconds(
            attempt, self._roll(), base=settings.backoff_base_seconds, cap=settings.backoff_cap_seconds
        )

    async def _try(self, tenant: str, batch: list[Parcel]) -> list[Parcel]:
        """Publish once; what should be tried again comes back."""
        answers = await self._in_turn(tenant, batch)
        if answers is None:
            return []
        if any(answer is None for answer in answers):
            self._trouble.pop(tenant, None)
        else:
            self._trouble.setdefault(tenant, _Trouble())
        self._sort_out(tenant, batch, answers)
        return [parcel for parcel, fault in zip(batch, answers, strict=True) if isinstance(fault, Transient)]

    async def _in_turn(self, tenant: str, batch: list[Parcel]) -> Sequence[Fault | None] | None:
        while True:
            ailing = tenant in self._trouble
            async with self._ailing_sends if ailing else self._sends:
                if ailing or tenant not in self._trouble:
                    answers = await self._publish(tenant, batch)
                    await self._clear(batch, answers)
                    return answers
            # It began to fail while this one waited for a slot: those are for topics that work.

    async def _publish(self, tenant: str, batch: list[Parcel]) -> Sequence[Fault | None] | None:
        """One answer for each parcel; None when the topic is broken and the whole lane was left."""
        try:
            with anyio.fail_after(self._settings.call_seconds):
                return await self._topics.publish(tenant, [parcel.row for parcel in batch])
        except TimeoutError:
            return [Transient("PublishBatch took too long")] * len(batch)
        except Transient as fault:
            self._log.warning(LogEvent.OUTBOX_PUBLISH_FAILED, error=fault, tenant=tenant, rows=len(batch))
            return [fault] * len(batch)
        except Permanent as error:
            self._shut(tenant, batch, error)
            return None

    async def _clear(self, batch: list[Parcel], answers: Sequence[Fault | None] | None) -> None:
        """Remove what was published."""
        delivered = [parcel for parcel, fault in zip(batch, answers or (), strict=False) if fault is None]
        if not delivered:
            return
        self._telemetry.measure(metrics.OUTBOX_PUBLISHED, len(delivered))
        if self._telemetry.measuring:
            now_ms = self._now() * 1000
            for parcel in delivered:
                self._telemetry.measure(metrics.OUTBOX_LAG, max(0.0, now_ms - parcel.row.written_at))
        await self._remove([parcel.row.key for parcel in delivered])
        self._finish(delivered, Fate.DELIVERED)

    def _sort_out(self, tenant: str, batch: list[Parcel], answers: Sequence[Fault | None]) -> None:
        for parcel, fault in zip(batch, answers, strict=True):
            if isinstance(fault, Permanent):
                self._failures.note(tenant, fault.code or "refused", 1)
                self._log.warning(
                    LogEvent.OUTBOX_PUBLISH_FAILED, error=fault, tenant=tenant, event_id=parcel.row.sk
                )
                self._finish([parcel], Fate.REFUSED)

    def _shut(self, tenant: str, batch: list[Parcel], error: Permanent) -> None:
        """The topic cannot be published to: leave everything, and leave it alone for longer each time."""
        trouble = self._trouble.setdefault(tenant, _Trouble())
        if trouble.shut_until <= self._now():
            trouble.strikes += 1
            pause = backoff_seconds(
                trouble.strikes, self._roll(), base=2.0, cap=self._settings.shut_cap_seconds
            )
            trouble.shut_until = self._now() + pause
        lane = self._lanes[tenant]
        left = [*batch, *lane.waiting]
        lane.waiting.clear()
        self._failures.note(tenant, error.code or "refused", len(left))
        self._log.warning(LogEvent.OUTBOX_PUBLISH_FAILED, error=error, tenant=tenant, rows=len(left))
        self._finish(left, Fate.LEFT)
