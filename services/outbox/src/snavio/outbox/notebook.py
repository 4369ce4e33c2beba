"""Notes the alerts that events call for, durably and apart from publishing.

Events gather by burst for a moment in memory and are added to the alerts table in one write a burst, so that noting
costs by the number of bursts and not of events, and the memory it takes is bounded by them too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.aws.errors import SnavioError
from snavio.runtime.log_events import LogEvent
from snavio.telemetry.bursts import ANY_TARGET, BurstKey, BurstSettings, Sighting, burst_key, joined
from snavio.telemetry.channels import ALERTABLE, NoAlert, route

if TYPE_CHECKING:
    from snavio.outbox.alert_choices import AlertChoices
    from snavio.outbox.values import StoredRow
    from snavio.runtime.logs import Log
    from snavio.telemetry.alert_log import AlertLog

_TARGETS_TOLD_APART = 20
_WRITES_AT_ONCE = 16


class _About(msgspec.Struct):
    target: object = None


class _Page(msgspec.Struct):
    seen: Sighting
    done: list[Callable[[], None]]


_about = msgspec.json.Decoder(_About)


class Notebook:
    """Takes events in at once; writes them down in the background."""

    def __init__(
        self,
        log_book: AlertLog,
        choices: AlertChoices,
        *,
        now: Callable[[], float],
        log: Log,
        bursts: BurstSettings,
        write_seconds: float = 0.5,
    ) -> None:
        self._log_book = log_book
        self._choices = choices
        self._now = now
        self._log = log
        self._bursts = bursts
        self._every = write_seconds
        self._pages: dict[BurstKey, _Page] = {}
        self._targets: Counter[tuple[str, str]] = Counter()
        self._writes = anyio.CapacityLimiter(_WRITES_AT_ONCE)

    def wants(self, row: StoredRow) -> bool:
        """Whether an event may alert anybody."""
        return row.event_type in ALERTABLE

    def note(self, row: StoredRow, done: Callable[[], None]) -> None:
        """Note an event; `done` is called once it is written down."""
        at = row.written_at / 1000
        self._add(_key(row), _Page(Sighting(1, at, at, row.body), [done]))

    async def run(self) -> None:
        """Write down what is noted, until cancelled."""
        while True:
            await anyio.sleep(self._every)
            await self.write()

    async def write(self) -> None:
        """Write down what has gathered; what cannot be written stays noted."""
        pages, self._pages = self._pages, {}
        self._targets.clear()
        async with anyio.create_task_group() as writes:
            for key, page in pages.items():
                writes.start_soon(self._write, key, page)

    def _add(self, key: BurstKey, page: _Page) -> None:
        if key not in self._pages and key.target != ANY_TARGET:
            kind = (key.tenant, key.event_type)
            if self._targets[kind] >= _TARGETS_TOLD_APART:
                key = msgspec.structs.replace(key, target=ANY_TARGET)
            else:
                self._targets[kind] += 1
        there = self._pages.get(key)
        if there is None:
            self._pages[key] = page
        else:
            there.seen = joined(there.seen, page.seen)
            there.done += page.done

    async def _write(self, key: BurstKey, page: _Page) -> None:
        try:
            async with self._writes:
                settings = await self._choices.of(key.tenant)
                if not isinstance(route(key.tenant, key.event_type, settings), NoAlert):
                    await self._log_book.see(key, page.seen, self._now(), self._bursts)
        except SnavioError as error:
            self._log.warning(
                LogEvent.ALERT_FAILED, error=error, tenant=key.tenant, event_type=key.event_type
            )
            self._add(key, page)
        else:
            for done in page.done:
                done()


def _key(row: StoredRow) -> BurstKey:
    try:
        target = _about.decode(row.body).target
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        target = None
    return burst_key(row.tenant, row.event_type, target)
