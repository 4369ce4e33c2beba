"""Faults planted on purpose, each with a seed whose run shows it: what the simulator is able to see.

A mutant replaces one real function for as long as a run takes. `seed` is the run in which the promise it names is broken;
without the mutant the same run breaks none. `python -m simulation --find-mutants` looks for seeds anew.
"""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import msgspec

from snavio.aws.errors import SnavioError
from snavio.dispatch import claim_store, delivery, reports
from snavio.dispatch.delivery import Delivery
from snavio.dispatch.outbox_writer import OutboxWriter
from snavio.domain.cold import Refresh, examine
from snavio.domain.dedupe import AlreadyDone, Fresh, Repeat, TakeOver, Wait, resolve_claim
from snavio.domain.fairness import FairnessWindows
from snavio.domain.freshness import Phase, Ttl
from snavio.domain.lease import UNIT, Lease
from snavio.domain.models import DispatchMode
from snavio.domain.screening import screen
from snavio.domain.warm import decide_warm
from snavio.fast import handler as fast_handler
from snavio.outbox.lanes import Lanes
from snavio.outbox.sweeper import Sweeper
from snavio.registry.store import RegistryStore
from snavio.registry.uses import GrantUses
from snavio.registry.view import Registry
from snavio.runtime.settlement import Settlement
from snavio.shield import handler as shield_handler
from snavio.shield.handler import ShieldHandler
from snavio.slow import ban_counter
from snavio.slow import handler as slow_handler
from snavio.slow.claims import Claims
from snavio.slow.limits import Limits
from snavio.slow.sending import Sending
from snavio.wire.signing import SigningKey

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault."""

    name: str
    fault: str
    promise: str
    seed: int
    place: Any
    attribute: str
    stand_in: Any

    def planted(self) -> AbstractContextManager[Any]:
        """The fault is there while this is entered."""
        return mock.patch.object(self.place, self.attribute, self.stand_in)


MUTANTS: dict[str, Mutant] = {}


def _plant(
    fault: str, *, breaks: str, seed: int, place: Any, attribute: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(stand_in: Callable[..., Any]) -> Callable[..., Any]:
        name = stand_in.__name__.strip("_").replace("_", "-")
        MUTANTS[name] = Mutant(name, fault, breaks, seed, place, attribute, stand_in)
        return stand_in

    return register


# Telling
_write = OutboxWriter.write
_take_one = Claims._take_one


@_plant(
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


@_plant(
    "what a batch write left unwritten is forgotten",
    breaks="nothing is lost",
    seed=0,
    place=OutboxWriter,
    attribute="_write_chunk",
)
async def _partial_write_forgotten(self: OutboxWriter, chunk: Any) -> None:
    await self._tables.put_batch(self._table, chunk)


@_plant(
    "an event's id is made up each time it is told",
    breaks="a step is told once",
    seed=2,
    place=reports,
    attribute="derived_id",
)
def _random_event_ids(*_parts: str) -> str:
    return str(uuid.uuid4())


@_plant(
    "a repeat is dropped without a word",
    breaks="nothing is lost",
    seed=0,
    place=Claims,
    attribute="_take_one",
)
async def _repeats_untold(self: Claims, case: Any, events: list[Any]) -> None:
    told: list[Any] = []
    await _take_one(self, case, told)
    events += [event for event in told if type(event).__name__ != "CommandDuplicate"]


@_plant(
    "what slipped through a revocation is not looked for",
    breaks="slips are told",
    seed=8,
    place=GrantUses,
    attribute="slipped",
)
def _slips_unreported(self: GrantUses, revocations: Any) -> list[Any]:
    return []


@_plant(
    "a grant is not looked at again where it is used",
    breaks="slips are told",
    seed=230,
    place=Sending,
    attribute="_still_granted",
)
def _grant_not_looked_at_again(self: Sending, case: Any, now: float) -> bool:
    return True


# Batches in part
_pass_on = ShieldHandler._pass_on
_send_batch = Delivery._send_batch


@_plant(
    "the answers to a batch are given to the wrong messages",
    breaks="nothing is lost",
    seed=6,
    place=ShieldHandler,
    attribute="_pass_on",
)
async def _answers_mixed_up(self: ShieldHandler, batch: Any, screened: Any) -> list[str | None]:
    return (await _pass_on(self, batch, screened))[::-1]


@_plant(
    "a message its target's queue refused counts as sent",
    breaks="outcomes are told",
    seed=2,
    place=delivery,
    attribute="_unsent",
)
def _refused_entry_believed(_fault: Any) -> None:
    return None


@_plant(
    "a send without an answer counts as not sent",
    breaks="strict ones once",
    seed=0,
    place=Delivery,
    attribute="_send_batch",
)
async def _unanswered_means_unsent(self: Delivery, queue: str, messages: Any) -> list[Any]:
    answers = await _send_batch(self, queue, messages)
    return [one and msgspec.structs.replace(one, uncertain=False) for one in answers]


# Leaving a queue
@_plant(
    "a worker that drains deletes what it has not finished",
    breaks="nothing is lost",
    seed=55,
    place=Settlement,
    attribute="hand_back",
)
async def _drain_deletes(self: Settlement) -> None:
    held = list(self._in_hand)
    for start in range(0, len(held), 10):
        await self._delete_once(held[start : start + 10])


@_plant(
    "a dead letter is deleted without being buried",
    breaks="nothing is lost",
    seed=2,
    place=Settlement,
    attribute="_bury",
)
async def _dead_letters_dropped(self: Settlement, batch: list[Any]) -> None:
    for held in batch:
        self._buried(held, None)


# Strict
@_plant(
    "a claim left behind is never taken over",
    breaks="nothing is buried alive",
    seed=0,
    place=claim_store,
    attribute="resolve_claim",
)
def _abandoned_claim_respected(record: Any, **asked: Any) -> Any:
    found = resolve_claim(record, **asked)
    return Wait(5.0) if isinstance(found, TakeOver) else found


@_plant(
    "a claim that was committed is ignored",
    breaks="strict ones once",
    seed=0,
    place=claim_store,
    attribute="resolve_claim",
)
def _commit_ignored(record: Any, **asked: Any) -> Any:
    found = resolve_claim(record, **asked)
    return Fresh(possible_duplicate=False) if isinstance(found, Repeat | AlreadyDone) else found


@_plant(
    "a delivery on a claim taken over is not marked",
    breaks="strict ones once",
    seed=0,
    place=claim_store,
    attribute="_marked",
)
def _takeover_unmarked(_verdict: Any) -> bool:
    return False


# Limits
@_plant(
    "slow delivers without reserving a unit",
    breaks="limits hold",
    seed=2,
    place=Limits,
    attribute="_reserve_limits",
)
async def _nothing_reserved(self: Limits, cases: Any) -> None:
    return


@_plant(
    "slow looks at no quota",
    breaks="quotas hold",
    seed=7,
    place=Limits,
    attribute="_reserve_quotas",
)
async def _quotas_ignored(self: Limits, cases: Any) -> None:
    return


@_plant(
    "the units of a lease are spent however old they are",
    breaks="limits hold",
    seed=96,
    place=Lease,
    attribute="take",
)
def _old_units_spent(self: Lease, _now_us: int) -> bool:
    if self._next + UNIT > self._end:
        return False
    self._next += UNIT
    return True


# What is remembered
_phase = Ttl.phase
_changes = RegistryStore.changes


@_plant(
    "what has expired is still used",
    breaks="memory is bounded",
    seed=0,
    place=Ttl,
    attribute="phase",
)
def _expired_memory_used(self: Ttl, age: float) -> Phase:
    return min(Phase.STALE, _phase(self, age))


@_plant(
    "a removal is read from the changelog and not applied",
    breaks="only what is allowed is delivered",
    seed=2,
    place=RegistryStore,
    attribute="changes",
)
async def _removal_skipped(self: RegistryStore, *, after: int = 0, limit: int | None = None) -> list[Any]:
    found = await _changes(self, after=after, limit=limit)
    return [
        msgspec.structs.replace(change, pk="settings", sk="nothing", after=None)
        if change.after is None
        else change
        for change in found
    ]


@_plant(
    "slow refuses on a registry older than the command",
    breaks="refusals are just",
    seed=47,
    place=slow_handler,
    attribute="examine",
)
def _refused_on_old_knowledge(escalated: Any, registry: Any, *, current: bool, now: float) -> Any:
    found = examine(escalated, registry, current=True, now=now)
    return examine(escalated, registry, current=current, now=now) if isinstance(found, Refresh) else found


# Who may send
@_plant(
    "the replay window is not checked",
    breaks="only what is allowed is delivered",
    seed=3,
    place=shield_handler,
    attribute="screen",
)
def _window_unchecked(body: str, received_at: float, registry: Any, policy: Any) -> Any:
    return screen(body, received_at, registry, msgspec.structs.replace(policy, window_seconds=1e9))


@_plant(
    "any signature will do",
    breaks="only what is allowed is delivered",
    seed=1,
    place=SigningKey,
    attribute="verify",
)
def _signature_unchecked(self: SigningKey, *_signed: Any) -> bool:
    return True


_key = Registry.key


@_plant(
    "a key is accepted after its end",
    breaks="only what is allowed is delivered",
    seed=29,
    place=Registry,
    attribute="key",
)
def _ended_key_accepted(self: Registry, source: str, version_id: str) -> Any:
    held = _key(self, source, version_id)
    return held and msgspec.structs.replace(held, not_after=None)


@_plant(
    "a ban outright is not looked at",
    breaks="only what is allowed is delivered",
    seed=19,
    place=Registry,
    attribute="ban_mode",
)
def _outright_ban_ignored(self: Registry, source: str, now: float) -> None:
    return None


@_plant(
    "fast does not look at bans",
    breaks="the fast path can be shut",
    seed=53,
    place=Registry,
    attribute="ban",
)
def _ban_ignored(self: Registry, source: str, target: str, command: str, now: float) -> None:
    return None


@_plant(
    "fast does not look at the mode the platform is in",
    breaks="the fast path can be shut",
    seed=52,
    place=fast_handler,
    attribute="decide_warm",
)
def _mode_ignored(command: Any, message_id: str, registry: Any, local: Any, mode: Any, now: float) -> Any:
    return decide_warm(command, message_id, registry, local, DispatchMode.ADAPTIVE, now)


_record = FairnessWindows.record


@_plant(
    "a source that is alone is banned for dominating",
    breaks="bans are just",
    seed=3,
    place=FairnessWindows,
    attribute="record",
)
def _lone_source_banned(self: FairnessWindows, pair: Any, source: str, policy: Any, now: float) -> Any:
    found = _record(self, pair, source, policy, now)
    window = self._windows[pair]
    if found is None and window.counts[source] == window.total >= policy.min_dispatches:
        window.counts["nobody"] = 1
        window.total += 1
        found = _record(self, pair, source, policy, now)
        window.total -= 1
        del window.counts["nobody"]
    return found


@_plant(
    "half of something counts as dominating it",
    breaks="bans are just",
    seed=4,
    place=FairnessWindows,
    attribute="record",
)
def _half_dominates(self: FairnessWindows, pair: Any, source: str, policy: Any, now: float) -> Any:
    return _record(self, pair, source, msgspec.structs.replace(policy, dominant_share=0.5), now)


@_plant(
    "a ban is opened while another is in force",
    breaks="bans are just",
    seed=27,
    place=FairnessWindows,
    attribute="_ban",
)
def _banned_over_and_over(self: FairnessWindows, key: Any, now: float) -> None:
    return None


@_plant(
    "the first warm-path ban is a ban everywhere",
    breaks="bans are just",
    seed=4,
    place=ban_counter,
    attribute="goes_global",
)
def _one_ban_goes_global(opened_at: list[float], policy: Any, now: float) -> bool:
    return True


# Carrying what is told
_publish = Lanes._publish


@_plant(
    "an event its topic refused counts as published",
    breaks="what is told arrives",
    seed=6,
    place=Lanes,
    attribute="_publish",
)
async def _refused_event_removed(self: Lanes, tenant: str, batch: Any) -> Any:
    answers = await _publish(self, tenant, batch)
    return answers and [None for _ in answers]


@_plant(
    "what the stream has passed and could not be published is never swept up",
    breaks="what is told arrives",
    seed=27,
    place=Sweeper,
    attribute="sweep",
)
async def _nothing_swept(self: Sweeper) -> None:
    return
