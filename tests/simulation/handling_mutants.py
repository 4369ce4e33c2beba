"""Faults planted in how commands are handled: what is told, sent, acknowledged, claimed and limited."""

from __future__ import annotations

import uuid
from typing import Any
from unittest import mock

import msgspec
from simulation.planting import plant

from snavio.aws.errors import SnavioError
from snavio.dispatch import claim_store, delivery, reports
from snavio.dispatch.delivery import Delivery
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.dispatch.targets import leave_payload
from snavio.domain.cold import after_failed_send, over_limit
from snavio.domain.dedupe import AlreadyDone, Fresh, Repeat, TakeOver, Wait, resolve_claim
from snavio.domain.lease import UNIT, Lease
from snavio.domain.screening import Passed
from snavio.fast import handler as fast_handler
from snavio.fast.handler import FastHandler
from snavio.registry.uses import GrantUses
from snavio.runtime.consumer import Consumer
from snavio.runtime.settlement import Settlement
from snavio.shield.handler import ShieldHandler
from snavio.slow import limits as slow_limits
from snavio.slow import sending
from snavio.slow.claims import Claims
from snavio.slow.limits import Limits
from snavio.slow.sending import Sending
from snavio.wire.events import FailedReason

# Telling
_write = OutboxWriter.write
_record = OutboxWriter.record
_delivered_event = fast_handler.delivered_event
_escalate = FastHandler._escalate
_take_one = Claims._take_one


@plant(
    "messages are deleted though their events could not be written",
    breaks="nothing is lost",
    seed=0,
    place=OutboxWriter,
    attribute="write",
)
async def _acknowledged_before_told(self: OutboxWriter, events: Any) -> None:
    try:
        await _write(self, events)
    except SnavioError:
        return


@plant(
    "what a batch write left unwritten is forgotten",
    breaks="nothing is lost",
    seed=0,
    place=OutboxWriter,
    attribute="_write_chunk",
)
async def _partial_write_forgotten(self: OutboxWriter, chunk: Any) -> None:
    await self._tables.put_batch(self._table, chunk)


@plant(
    "an event's id is made up each time it is told",
    breaks="a step is told once",
    seed=0,
    place=reports,
    attribute="derived_id",
)
def _random_event_ids(*_parts: str) -> str:
    return str(uuid.uuid4())


@plant(
    "every event has the same id",
    breaks="one event id, one story",
    seed=0,
    place=reports,
    attribute="derived_id",
)
def _one_event_id(*_parts: str) -> str:
    return str(uuid.UUID(int=0, version=5))


@plant(
    "a delivery of fast's has another id each time it is told",
    breaks="a step is told once",
    seed=4,
    place=fast_handler,
    attribute="delivered_event",
)
def _deliveries_told_anew(*about: Any, **more: Any) -> Any:
    return msgspec.structs.replace(_delivered_event(*about, **more), event_id=str(uuid.uuid4()))


@plant(
    "an escalation is not told",
    breaks="outcomes are told",
    seed=0,
    place=OutboxWriter,
    attribute="record",
)
async def _escalations_untold(self: OutboxWriter, told: Any) -> Any:
    return await _record(self, [one for one in told if type(one[1]).__name__ != "CommandEscalated"])


@plant(
    "a repeat is dropped without a word",
    breaks="nothing is lost",
    seed=0,
    place=Claims,
    attribute="_take_one",
)
async def _repeats_untold(self: Claims, case: Any, events: list[Any]) -> None:
    told: list[Any] = []
    await _take_one(self, case, told)
    events += [one for one in told if type(one[1]).__name__ != "CommandDuplicate"]


@plant(
    "what slipped through a revocation is not looked for",
    breaks="slips are told",
    seed=8,
    place=GrantUses,
    attribute="slipped",
)
def _slips_unreported(self: GrantUses, revocations: Any) -> list[Any]:
    return []


@plant(
    "a grant is not looked at again where it is used",
    breaks="slips are told",
    seed=90,
    place=Sending,
    attribute="_still_granted",
)
def _grant_not_looked_at_again(self: Sending, case: Any, now: float) -> bool:
    return True


# Batches in part
_pass_on = ShieldHandler._pass_on
_send_batch = Delivery._send_batch


@plant(
    "the answers to a batch are given to the wrong messages",
    breaks="nothing is lost",
    seed=2,
    place=ShieldHandler,
    attribute="_pass_on",
)
async def _answers_mixed_up(self: ShieldHandler, batch: Any, screened: Any) -> list[str | None]:
    return (await _pass_on(self, batch, screened))[::-1]


@plant(
    "what has an id that shield has passed on before is dropped without a word",
    breaks="nothing is lost",
    seed=0,
    place=ShieldHandler,
    attribute="_pass_on",
)
async def _ids_passed_on_once(self: ShieldHandler, batch: Any, screened: Any) -> list[str | None]:
    ids = [one.command.id if isinstance(one, Passed) else None for one in screened]
    known = vars(self).setdefault("known", set())
    fresh = [None if identity in known else one for identity, one in zip(ids, screened, strict=True)]
    faults = await _pass_on(self, batch, fresh)
    known |= {one for one, fault in zip(ids, faults, strict=True) if one and fault is None}
    return faults


@plant(
    "a message its target's queue refused counts as sent",
    breaks="outcomes are told",
    seed=3,
    place=delivery,
    attribute="_unsent",
)
def _refused_entry_believed(_fault: Any) -> None:
    return None


@plant(
    "a send without an answer counts as not sent",
    breaks="strict ones once",
    seed=4,
    place=Delivery,
    attribute="_send_batch",
)
async def _unanswered_means_unsent(self: Delivery, queue: str, messages: Any) -> list[Any]:
    answers = await _send_batch(self, queue, messages)
    return [one and msgspec.structs.replace(one, uncertain=False) for one in answers]


@plant(
    "a send that failed for a moment counts as failed for good",
    breaks="nothing is buried alive",
    seed=2,
    place=sending,
    attribute="after_failed_send",
)
def _first_failure_final(command: Any, **failed: Any) -> Any:
    return after_failed_send(command, **{**failed, "permanent": True})


@plant(
    "a payload too large for its target's queue is not left anywhere",
    breaks="only what is allowed is delivered",
    seed=6,
    place=sending,
    attribute="leave_payload",
)
async def _payload_not_left(_objects: Any, bucket: str, command: Any) -> Any:
    return await leave_payload(mock.AsyncMock(), bucket, command)


# Leaving a queue
@plant(
    "a worker told to stop goes on as before",
    breaks="workers stand",
    seed=0,
    place=Consumer,
    attribute="drain",
)
def _drain_ignored(self: Consumer, _seconds: float) -> None:
    return


@plant(
    "a worker that drains deletes what it has not finished",
    breaks="nothing is lost",
    seed=218,
    place=Settlement,
    attribute="hand_back",
)
async def _drain_deletes(self: Settlement) -> None:
    held = list(self._in_hand)
    for start in range(0, len(held), 10):
        await self._delete_once(held[start : start + 10])


@plant(
    "a dead letter is deleted without being buried",
    breaks="nothing is lost",
    seed=5,
    place=Settlement,
    attribute="_bury",
)
async def _dead_letters_dropped(self: Settlement, batch: list[Any]) -> None:
    for held in batch:
        self._buried(held, None)


# Strict
@plant(
    "a claim left behind is never taken over",
    breaks="nothing is buried alive",
    seed=0,
    place=claim_store,
    attribute="resolve_claim",
)
def _abandoned_claim_respected(record: Any, **asked: Any) -> Any:
    found = resolve_claim(record, **asked)
    return Wait(5.0) if isinstance(found, TakeOver) else found


@plant(
    "a claim that was committed is ignored",
    breaks="strict ones once",
    seed=0,
    place=claim_store,
    attribute="resolve_claim",
)
def _commit_ignored(record: Any, **asked: Any) -> Any:
    found = resolve_claim(record, **asked)
    return Fresh(possible_duplicate=False) if isinstance(found, Repeat | AlreadyDone) else found


async def _taken(_queue: str, messages: Any) -> list[None]:
    return [None for _ in messages]


@plant(
    "a strict command that comes for the first time counts as a repeat",
    breaks="outcomes are told",
    seed=0,
    place=claim_store,
    attribute="resolve_claim",
)
def _first_taken_for_repeat(record: Any, **asked: Any) -> Any:
    return Repeat() if record is None else resolve_claim(record, **asked)


@plant(
    "what is escalated is told and not sent",
    breaks="nothing is lost",
    seed=0,
    place=FastHandler,
    attribute="_escalate",
)
async def _escalations_unsent(self: FastHandler, work: Any) -> None:
    with mock.patch.object(self, "_queues", mock.AsyncMock(send=_taken)):
        await _escalate(self, work)


@plant(
    "a delivery on a claim taken over is not marked",
    breaks="strict ones once",
    seed=4,
    place=claim_store,
    attribute="_marked",
)
def _takeover_unmarked(_verdict: Any) -> bool:
    return False


@plant(
    "every claim is taken for one taken over",
    breaks="marks are just",
    seed=0,
    place=claim_store,
    attribute="_marked",
)
def _all_marked(_verdict: Any) -> bool:
    return True


# Limits
@plant(
    "slow delivers without reserving a unit",
    breaks="limits hold",
    seed=2,
    place=Limits,
    attribute="_reserve_limits",
)
async def _nothing_reserved(self: Limits, cases: Any) -> None:
    return


@plant(
    "slow looks at no quota",
    breaks="quotas hold",
    seed=0,
    place=Limits,
    attribute="_reserve_quotas",
)
async def _quotas_ignored(self: Limits, cases: Any) -> None:
    return


@plant(
    "the units of a lease are spent however old they are",
    breaks="limits hold",
    seed=113,
    place=Lease,
    attribute="take",
)
def _old_units_spent(self: Lease, _now_us: int) -> bool:
    if self._next + UNIT > self._end:
        return False
    self._next += UNIT
    return True


@plant(
    "whatever is over its limit is refused as unfair",
    breaks="refusals are just",
    seed=2,
    place=slow_limits,
    attribute="over_limit",
)
def _over_limit_unfair(*about: Any, **more: Any) -> Any:
    return msgspec.structs.replace(over_limit(*about, **more), reason=FailedReason.FAIRNESS_VIOLATION)
