"""Write-once delivery: who may send a strict command, decided from the record of its id.

A claim is taken before the send and committed after it. A worker that dies in between leaves a claim that its own
message, when it returns, or anyone once the claim has run out, takes over; nobody can know whether the send happened, so
that delivery is marked as a possible repeat.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

import msgspec

from snavio.wire.commands import EscalationReason


class DedupePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How long ids are remembered and claims are respected."""

    remember_seconds: float = 300.0
    claim_seconds: float = 30.0


class ClaimRecord(msgspec.Struct, frozen=True):
    """What is known of an id."""

    owner: str
    """The queue message that claimed it."""
    claim_id: str
    """Different for every claim, so that a claim taken over cannot be committed by the one who lost it."""
    committed: bool
    claimed_until: float
    remembered_until: float
    possible_duplicate: bool = False
    """How the delivery it is for is marked: what is told of it later must say the same."""


class Fresh(msgspec.Struct, frozen=True, tag=True):
    """Nobody has the id: claim it."""

    possible_duplicate: bool


class TakeOver(msgspec.Struct, frozen=True, tag=True):
    """An abandoned claim, whose send may or may not have happened."""

    claim_id: str


class Repeat(msgspec.Struct, frozen=True, tag=True):
    """Delivered before, by another message with the same id."""


class AlreadyDone(msgspec.Struct, frozen=True, tag=True):
    """Delivered before by this very message, which came back because its end was not recorded."""

    possible_duplicate: bool


class Wait(msgspec.Struct, frozen=True, tag=True):
    """Another message is on its way with the id; how that ends decides."""

    seconds: float


Claim: TypeAlias = Fresh | TakeOver | Repeat | AlreadyDone | Wait


def resolve_claim(
    record: ClaimRecord | None, *, owner: str, received_at: float, now: float, policy: DedupePolicy
) -> Claim:
    """What a message may do with its id, given the record found.

    A command that has been under way for longer than ids are remembered may have been delivered and forgotten: it is
    delivered, and marked.
    """
    if record is None or now >= record.remembered_until:
        return Fresh(possible_duplicate=now - received_at >= policy.remember_seconds)
    if record.committed:
        return AlreadyDone(record.possible_duplicate) if record.owner == owner else Repeat()
    if record.owner == owner or now >= record.claimed_until:
        return TakeOver(record.claim_id)
    return Wait(record.claimed_until - now)


class HandedOn(msgspec.Struct, frozen=True):
    """How a worker handed a strict command on: for which message, and why."""

    message_id: str
    reason: EscalationReason


class SeenIds:
    """The ids of strict commands a worker handed on itself, and how; bounded."""

    def __init__(self, *, remember_seconds: float, most: int = 100_000) -> None:
        self._remember = remember_seconds
        self._most = most
        self._seen: OrderedDict[str, tuple[HandedOn, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, key: str, handed: HandedOn, now: float) -> None:
        """Remember an id whose escalation is durable."""
        self._seen[key] = (handed, now + self._remember)
        self._seen.move_to_end(key)
        while len(self._seen) > self._most:
            self._seen.popitem(last=False)

    def find(self, key: str, now: float) -> HandedOn | None:
        """How the id was handed on, while it is remembered."""
        found = self._seen.get(key)
        if found is None:
            return None
        if now >= found[1]:
            del self._seen[key]
            return None
        return found[0]
