"""Everything one row needs, from being read to being settled: publishing, alerts, and a note if it has to stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from snavio.aws.errors import SnavioError
from snavio.outbox.values import Fate, StoredRow
from snavio.runtime.coalescer import Coalescer
from snavio.runtime.log_events import LogEvent

if TYPE_CHECKING:
    from snavio.outbox.lanes import Lanes
    from snavio.outbox.notebook import Notebook
    from snavio.outbox.ports import Rows
    from snavio.runtime.logs import Log

_ANNOTATIONS_AT_ONCE = 8


class _Carried(msgspec.Struct):
    row: StoredRow
    settled: Callable[[], None]
    noting: bool
    noted: bool = False
    fate: Fate | None = None


class Carrier:
    """Carries rows. Publishing and alerts go their own ways; a row is settled when both are done.

    What stays in the table is annotated first, so that the sweeper neither raises its alerts again nor keeps trying
    a row its topic refused.
    """

    def __init__(
        self, lanes: Lanes, notebook: Notebook, rows: Rows, *, now: Callable[[], float], log: Log
    ) -> None:
        self._lanes = lanes
        self._notebook = notebook
        self._rows = rows
        self._now = now
        self._log = log
        self._annotating: Coalescer[_Carried] = Coalescer(
            self._annotate, size=1, linger=0.0, lanes=_ANNOTATIONS_AT_ONCE
        )

    def carry(
        self, row: StoredRow, settled: Callable[[], None], *, wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Take a row in hand; `settled` is called once nothing more is to be done for it here.

        A row no longer `wanted` before it is published is somebody else's.
        """
        carried = _Carried(row, settled, noting=not row.alerted and self._notebook.wants(row))
        if carried.noting:
            self._notebook.note(row, lambda: self._noted(carried))
        self._lanes.offer(row, lambda fate: self._fated(carried, fate), wanted=wanted)

    def note_only(self, row: StoredRow, settled: Callable[[], None]) -> None:
        """For a row already delivered: raise its alerts, in case whoever delivered it could not."""
        if self._notebook.wants(row):
            self._notebook.note(row, settled)
        else:
            settled()

    async def run(self) -> None:
        """Annotate what stays, until cancelled."""
        await self._annotating.run()

    def _fated(self, carried: _Carried, fate: Fate) -> None:
        carried.fate = fate
        self._advance(carried)

    def _noted(self, carried: _Carried) -> None:
        carried.noted = True
        self._advance(carried)

    def _advance(self, carried: _Carried) -> None:
        if carried.fate is None or (carried.noting and not carried.noted):
            return
        stays_with_news = carried.fate is Fate.REFUSED or (carried.fate is Fate.LEFT and carried.noting)
        if stays_with_news:
            self._annotating.add([carried])
        else:
            carried.settled()

    async def _annotate(self, batch: list[_Carried]) -> None:
        for carried in batch:
            refused = carried.fate is Fate.REFUSED
            try:
                await self._rows.annotate(
                    carried.row,
                    alerted=carried.noting or bool(carried.row.alerted),
                    refused_at=int(self._now() * 1000) if refused else 0,
                )
            except SnavioError as error:
                # The worst that follows is an alert counted twice or a refused row tried again.
                self._log.warning(LogEvent.OUTBOX_WRITE_FAILED, error=error, event_id=carried.row.sk)
            carried.settled()
