"""Write-once for a batch: who may be sent, who is a repeat, and what is remembered afterwards."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import msgspec

from snavio.aws.errors import SnavioError
from snavio.dispatch.claim_store import ClaimStore, Held, claim_key
from snavio.dispatch.reports import delivered_event, duplicate_event
from snavio.domain.dedupe import AlreadyDone, Repeat, Wait
from snavio.runtime import metrics
from snavio.runtime.outcome import Done, Retry
from snavio.runtime.telemetry import Telemetry
from snavio.slow.case import Case
from snavio.wire.events import Event
from snavio.wire.times import format_time

_DONE = Done()
_LONGEST_WAIT_SECONDS = 5.0
_TWIN_WAIT_SECONDS = 1.0


class Claims:
    """Claims for strict commands. Commands of other routes pass through untouched."""

    def __init__(self, store: ClaimStore, *, clock: Callable[[], float], telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry

    async def take(self, cases: list[Case], events: list[tuple[Case, Event]]) -> None:
        """Claim the ids of open strict commands; settle those that are repeats."""
        firsts: dict[str, Case] = {}
        twins: list[Case] = []
        for case in cases:
            if case.open and case.eligible is not None and case.eligible.strict:
                self._telemetry.measure(metrics.DEDUP_STRICT, path="slow")
                if firsts.setdefault(claim_key(case.command), case) is not case:
                    twins.append(case)
        for twin in twins:
            # How the first of them ends decides; by the time it returns, that is known.
            twin.outcome = Retry("the same command is in hand", _TWIN_WAIT_SECONDS)
        async with anyio.create_task_group() as group:
            for case in firsts.values():
                group.start_soon(self._take_one, case, events)

    async def _take_one(self, case: Case, events: list[tuple[Case, Event]]) -> None:
        try:
            verdict = await self._store.claim(case.command, case.message.id)
        except SnavioError as error:
            case.outcome = Retry(f"its id could not be claimed: {error}")
            return
        now = self._clock()
        match verdict:
            case Held():
                case.claim = verdict
            case Repeat():
                self._telemetry.measure(metrics.DEDUP_PREVENTED, path="slow")
                events.append((case, duplicate_event(case.command, case.message.id, now)))
                case.outcome = _DONE
            case AlreadyDone():
                # It was sent and committed; only the record of it may be missing. The same event has the same id.
                event = delivered_event(
                    case.command,
                    case.message.id,
                    path="slow",
                    at=now,
                    at_text=format_time(now),
                    possible_duplicate=verdict.possible_duplicate,
                )
                events.append((case, event))
                case.outcome = _DONE
            case Wait():
                case.outcome = Retry(
                    "its id is claimed by another", min(verdict.seconds, _LONGEST_WAIT_SECONDS)
                )

    async def conclude(self, cases: list[Case]) -> None:
        """Commit the claims of what was sent, and let go of those certainly not sent.

        A claim that was taken over stands: whoever had it before may have sent the command, and forgetting that would
        let the next one with the same id go as if it were the first.
        """
        async with anyio.create_task_group() as group:
            for case in cases:
                claim = case.claim
                if claim is None or case.maybe_sent:
                    continue
                if case.sent_at is not None:
                    group.start_soon(self._commit, case, claim)
                elif not claim.possible_duplicate:
                    group.start_soon(self._release, case, claim)

    async def _commit(self, case: Case, claim: Held) -> None:
        try:
            committed = await self._store.commit(claim)
        except SnavioError as error:
            # Left claimed: when the message returns it takes its own claim over and marks the delivery.
            case.outcome = Retry(f"its delivery could not be committed: {error}")
        else:
            if not committed:
                # Somebody took it over meanwhile and delivers it too, so this one is told as what it may be.
                case.claim = msgspec.structs.replace(claim, possible_duplicate=True)
            self._telemetry.measure(metrics.DEDUP_LATENCY, (self._clock() - case.command.received_at) * 1000)

    async def _release(self, case: Case, claim: Held) -> None:
        try:
            await self._store.release(claim)
        except SnavioError:
            return  # it runs out by itself
        finally:
            case.claim = None
