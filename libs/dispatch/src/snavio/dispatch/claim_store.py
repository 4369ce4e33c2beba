"""The record of a strict command's id: claimed before the send, committed after it (see `snavio.domain.dedupe`)."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import msgspec

from snavio.aws.errors import ConditionFailed
from snavio.aws.ports import Tables
from snavio.aws.values import Absent, AllOf, Change, Equals, Item
from snavio.domain.dedupe import (
    AlreadyDone,
    ClaimRecord,
    DedupePolicy,
    Fresh,
    Repeat,
    TakeOver,
    Wait,
    resolve_claim,
)
from snavio.wire.commands import Admitted

_ROUNDS = 5


class Held(msgspec.Struct, frozen=True, tag=True):
    """The id is this message's to deliver, until the claim runs out."""

    key: str
    claim_id: str
    until: float
    possible_duplicate: bool


class ClaimStore:
    """Claims on ids, in the dedupe table."""

    def __init__(
        self, tables: Tables, table: str, policy: DedupePolicy, *, clock: Callable[[], float]
    ) -> None:
        self._tables = tables
        self._table = table
        self._policy = policy
        self._clock = clock

    async def claim(self, command: Admitted, owner: str) -> Held | Repeat | AlreadyDone | Wait:
        """Claim the command's id for a message, or say why not."""
        key = claim_key(command)
        record: ClaimRecord | None = None
        for _ in range(_ROUNDS):
            now = self._clock()
            verdict = resolve_claim(
                record, owner=owner, received_at=command.received_at, now=now, policy=self._policy
            )
            if not isinstance(verdict, Fresh | TakeOver):
                return verdict
            claim_id = uuid.uuid4().hex
            until = now + self._policy.claim_seconds
            marked = _marked(verdict)
            fresh = ClaimRecord(owner, claim_id, False, until, until + self._policy.remember_seconds, marked)
            condition = Absent("pk") if record is None else _is_still(record)
            try:
                await self._tables.put(self._table, _item(key, fresh), condition=condition)
            except ConditionFailed as found:
                record = _record(found.old)
                if record is not None and record.claim_id == claim_id:
                    # A retried call found its own first try.
                    return Held(key, claim_id, until, marked)
                continue
            return Held(key, claim_id, until, marked)
        return Wait(1.0)

    async def commit(self, held: Held) -> bool:
        """The command was sent: remember its id. False when the claim was taken over, and is the other's to commit."""
        remembered = self._clock() + self._policy.remember_seconds
        change = Change(
            assign={"committed": True, "remembered_until": remembered, "expires_at": int(remembered) + 60}
        )
        try:
            await self._tables.update(
                self._table, {"pk": held.key}, change, condition=Equals("claim_id", held.claim_id)
            )
        except ConditionFailed:
            return False
        return True

    async def release(self, held: Held) -> None:
        """The command was certainly not sent by anyone: let its id go. Not for a claim that was taken over."""
        try:
            await self._tables.delete(
                self._table, {"pk": held.key}, condition=Equals("claim_id", held.claim_id)
            )
        except ConditionFailed:
            return


def claim_key(command: Admitted) -> str:
    """What is remembered: the id together with who sent what to whom, so that nobody can use up another's ids."""
    return f"{command.source}#{command.target}#{command.name}#{command.id.lower()}"


def _is_still(record: ClaimRecord) -> AllOf:
    """A claim taken over must be the one that was looked at, and not have been committed since."""
    return AllOf((Equals("claim_id", record.claim_id), Equals("committed", record.committed)))


def _marked(verdict: Fresh | TakeOver) -> bool:
    return verdict.possible_duplicate if isinstance(verdict, Fresh) else True


def _item(key: str, record: ClaimRecord) -> Item:
    return {"pk": key, "expires_at": int(record.remembered_until) + 60, **msgspec.structs.asdict(record)}


def _record(item: Item | None) -> ClaimRecord | None:
    return None if item is None else msgspec.convert(item, ClaimRecord, strict=False)
