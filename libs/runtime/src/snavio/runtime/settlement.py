"""Performs what handlers decided: deletes, delayed returns and dead letters, in batches and confirmed by the queue."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.aws.errors import Permanent, Transient
from snavio.aws.ports import MAX_BATCH
from snavio.runtime import metrics
from snavio.runtime.backoff import backoff_seconds, visibility_timeout
from snavio.runtime.coalescer import Coalescer
from snavio.runtime.dead_letters import dead_letter, sendable_batches
from snavio.runtime.errors import InvariantBroken
from snavio.runtime.log_events import LogEvent
from snavio.runtime.outcome import Dead, Done, Retry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from snavio.aws.ports import Queues
    from snavio.aws.values import Fault
    from snavio.runtime.in_hand import Held, InHand
    from snavio.runtime.logs import Log
    from snavio.runtime.outcome import Outcome
    from snavio.runtime.telemetry import Telemetry

_DELETE_TRIES = 5
_DELETE_BACKOFF = 0.2


class Tally(msgspec.Struct):
    """Messages by what became of them, since the start."""

    received: int = 0
    done: int = 0
    retried: int = 0
    dead: int = 0
    released: int = 0
    unconfirmed: int = 0
    """Handled, but the queue did not confirm the delete: they will be delivered again."""


class Settlement:
    """Settles the messages of one queue. A message leaves the hand when the queue has confirmed its fate."""

    def __init__(
        self,
        *,
        queues: Queues,
        queue: str,
        dlq: str,
        name: str,
        in_hand: InHand,
        tally: Tally,
        roll: Callable[[], float],
        log: Log,
        telemetry: Telemetry,
    ) -> None:
        self._queues = queues
        self._queue = queue
        self._dlq = dlq
        self._name = name
        self._in_hand = in_hand
        self._tally = tally
        self._roll = roll
        self._log = log
        self._telemetry = telemetry
        self._deletes: Coalescer[Held] = Coalescer(self._delete)
        self._returns: Coalescer[Held] = Coalescer(self._return)
        self._burials: Coalescer[Held] = Coalescer(self._bury)

    def settle(self, batch: Sequence[Held], outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of a batch, one for each message; what they ask for follows in the background."""
        if len(outcomes) != len(batch):
            raise InvariantBroken(
                f"the handler of {self._name} gave {len(outcomes)} outcomes for {len(batch)} messages"
            )
        sorted_out: dict[type, list[Held]] = {Done: [], Retry: [], Dead: []}
        # All are checked before any is taken: nothing of a handler that breaks its contract is believed.
        for outcome in outcomes:
            if type(outcome) not in sorted_out:
                raise InvariantBroken(f"the handler of {self._name} gave {outcome!r}, which is no outcome")
        for held, outcome in zip(batch, outcomes, strict=True):
            held.outcome = outcome
            held.deletable = isinstance(outcome, Done)
            sorted_out[type(outcome)].append(held)
        for kind, coalescer in ((Done, self._deletes), (Retry, self._returns), (Dead, self._burials)):
            if sorted_out[kind]:
                coalescer.add(sorted_out[kind])

    async def run(self) -> None:
        """Perform what is settled, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._deletes.run)
            group.start_soon(self._returns.run)
            group.start_soon(self._burials.run)

    async def flush(self) -> None:
        """Return once everything settled so far is confirmed or given up."""
        # Dead letters become deletes, or returns when they cannot be sent, so they go first.
        for coalescer in (self._burials, self._deletes, self._returns):
            await coalescer.flush()

    async def hand_back(self) -> None:
        """Delete what is done and show everything else in hand to others at once. To be called when `run` has ended."""
        done = [held for held in self._in_hand if held.deletable]
        rest = [held for held in self._in_hand if not held.deletable]
        async with anyio.create_task_group() as group:
            for batch in _tens(done):
                group.start_soon(self._delete_once, batch)
            for batch in _tens(rest):
                group.start_soon(self._release, batch)

    async def _delete(self, batch: list[Held]) -> None:
        left = batch
        for attempt in range(1, _DELETE_TRIES):
            left = await self._delete_once(left)
            if not left:
                return
            await anyio.sleep(backoff_seconds(attempt, self._roll(), base=_DELETE_BACKOFF))
        for held in await self._delete_once(left):
            self._unconfirmed(held)

    async def _delete_once(self, batch: list[Held]) -> list[Held]:
        """Returns those worth another try."""
        faults = await self._attempt("delete", self._queues.delete(self._queue, _receipts(batch)), len(batch))
        again: list[Held] = []
        gone: list[Held] = []
        for held, fault in zip(batch, faults, strict=True):
            if fault is None:
                gone.append(held)
            elif isinstance(fault, Transient):
                again.append(held)
            else:
                self._unconfirmed(held, fault)
        self._in_hand.let_go(*gone)
        if done := sum(isinstance(held.outcome, Done) for held in gone):
            self._tally.done += done
            self._count("done", done)
        return again

    def _unconfirmed(self, held: Held, fault: Fault | None = None) -> None:
        self._in_hand.let_go(held)
        self._tally.unconfirmed += 1
        self._count("unconfirmed")
        self._log.warning(
            LogEvent.QUEUE_DELETE_FAILED, error=fault, queue=self._name, message_id=held.message.id
        )

    async def _return(self, batch: list[Held]) -> None:
        timeouts = [(held.message.receipt, self._delay(held)) for held in batch]
        call = self._queues.set_visibility(self._queue, timeouts)
        # When this fails the message still returns, by itself, once its visibility runs out.
        await self._attempt("set_visibility", call, len(batch))
        self._in_hand.let_go(*batch)
        self._tally.retried += len(batch)
        self._count("retried", len(batch))

    async def _release(self, batch: list[Held]) -> None:
        timeouts = [(held.message.receipt, self._delay(held)) for held in batch]
        await self._attempt("set_visibility", self._queues.set_visibility(self._queue, timeouts), len(batch))
        self._in_hand.let_go(*batch)
        self._tally.released += len(batch)
        self._log.info(LogEvent.QUEUE_RELEASED, queue=self._name, messages=len(batch))

    def _delay(self, held: Held) -> int:
        match held.outcome:
            case Retry(after_seconds=float() | int() as seconds):
                return visibility_timeout(seconds)
            case Retry():
                return visibility_timeout(backoff_seconds(held.message.receive_count, self._roll()))
            case _:
                return 0

    async def _bury(self, batch: list[Held]) -> None:
        rest = iter(batch)
        letters = [dead_letter(held.message, _reason(held)) for held in batch]
        for sendable in sendable_batches(letters):
            faults = await self._attempt("send", self._queues.send(self._dlq, sendable), len(sendable))
            for held, fault in zip(list(islice(rest, len(sendable))), faults, strict=True):
                self._buried(held, fault)

    def _buried(self, held: Held, fault: Fault | None) -> None:
        reason = _reason(held)
        log = self._log.bind(queue=self._name, message_id=held.message.id, reason=reason)
        if fault is not None:
            log.warning(LogEvent.DEAD_LETTER_FAILED, error=fault)
            held.outcome = Retry(reason)
            self._returns.add([held])
            return
        log.warning(LogEvent.MESSAGE_DEAD)
        self._tally.dead += 1
        self._count("dead")
        held.deletable = True
        self._deletes.add([held])

    async def _attempt(
        self, operation: str, call: Awaitable[list[Fault | None]], count: int
    ) -> list[Fault | None]:
        """One answer for each entry, also when the call as a whole failed."""
        try:
            faults = await call
        except (Transient, Permanent) as error:
            faults: list[Fault | None] = [error] * count
        if failed := sum(fault is not None for fault in faults):
            self._telemetry.measure(metrics.QUEUE_FAULTS, failed, queue=self._name, operation=operation)
        return faults

    def _count(self, outcome: str, messages: int = 1) -> None:
        self._telemetry.measure(metrics.QUEUE_MESSAGES, messages, queue=self._name, outcome=outcome)


def _receipts(batch: Iterable[Held]) -> list[str]:
    return [held.message.receipt for held in batch]


def _reason(held: Held) -> str:
    return held.outcome.reason if isinstance(held.outcome, Dead) else ""


def _tens(entries: Iterable[Held]) -> Iterator[list[Held]]:
    rest = iter(entries)
    while batch := list(islice(rest, MAX_BATCH)):
        yield batch
