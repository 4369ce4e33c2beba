"""Slow's decisions, as a tree: its stages one after another, each explored by itself.

That slow goes through them in this order is its handler's affair; `tests/dispatch` sends it commands with everything
against them and takes the objections away one by one.
"""

from __future__ import annotations

from typing import Any

from exploring import Leaf, Oracle, Question, Tree, Unsure, continued, explore
from flow_fast import COMMAND, DOMINANCE, AskedRegistry

from snavio.domain import dedupe
from snavio.domain.cold import (
    Eligible,
    Refresh,
    Refusal,
    RetryPolicy,
    TryAgain,
    after_failed_send,
    examine,
    over_limit,
    over_quota,
)
from snavio.domain.fairness import Shares
from snavio.domain.models import RateLimit, Route
from snavio.wire.commands import EscalationReason

_NOW = 1_000_000.0
_ON = Leaf("eligible")
_CLAIM = Leaf("see: its id", "next")
_UNITS = Leaf("see: its units", "next")
_DELIVERY = Leaf("see: its delivery", "next")
_ROUTE = Route(target="bot", command="notify", tenant="owner", queue_arn="arn")
_OWNER = "this message"


def slow_trees() -> dict[str, Tree]:
    """From the slow queue to the target's, or to a refusal: a tree a stage, the last leaf of one leading to the next."""
    strict = Question("Is the route strict?", (("no", _UNITS), ("yes", _CLAIM)))
    return {
        "may it go": continued(explore(_examined), _ON, strict),
        "its id": _claims(_UNITS),
        "its units": _quota(_limit(_DELIVERY)),
        "its delivery": _sending(),
    }


def _yes(oracle: Oracle, question: str) -> Unsure:
    return Unsure(lambda: oracle.ask(question, {"yes": True, "no": False}))


def _examined(oracle: Oracle) -> Leaf:
    class Left:
        command = COMMAND

        @property
        def reason(self) -> EscalationReason:
            return oracle.ask("Why did fast leave it?", {reason.value: reason for reason in EscalationReason})

    current: Any = _yes(oracle, "Has the registry been\nread since fast let go?")
    left: Any = Left()
    registry: Any = AskedRegistry(oracle)
    match examine(left, registry, current=current, now=_NOW):
        case Eligible():
            return _ON
        case Refresh():
            return Leaf("read what changed in\nthe registry, ask again", "again")
        case Refusal() as refusal:
            return _refused(refusal)


def _claims(below: Tree) -> Tree:
    marked, fresh = Leaf("marked"), Leaf("fresh")

    def decide(oracle: Oracle) -> Leaf:
        class Record:
            claim_id = "c"
            # Told again as it was told before; it decides nothing.
            possible_duplicate = False

            @property
            def remembered_until(self) -> float:
                return oracle.ask("Is it still in force?", {"yes": _NOW + 9, "no": _NOW - 9})

            @property
            def committed(self) -> bool:
                return oracle.ask("Was it delivered?", {"yes": True, "no": False})

            @property
            def owner(self) -> str:
                return oracle.ask("By this very message?", {"yes": _OWNER, "no": "another"})

            @property
            def claimed_until(self) -> float:
                return oracle.ask("Has the claim run out?", {"yes": _NOW - 5, "no": _NOW + 5})

        record: Any = oracle.ask("Is there a record\nof its id?", {"no": None, "yes": Record()})
        since: Any = _yes(oracle, "Under way for longer\nthan ids are kept?")
        policy = dedupe.DedupePolicy()
        match dedupe.resolve_claim(record, owner=_OWNER, received_at=since, now=_NOW, policy=policy):
            case dedupe.Fresh(possible_duplicate=False):
                return fresh
            case dedupe.Fresh() | dedupe.TakeOver():
                return marked
            case dedupe.Repeat():
                return Leaf("snavio.command.duplicate", "stop")
            case dedupe.AlreadyDone():
                return Leaf("snavio.command.delivered,\ntold again", "go")
            case dedupe.Wait():
                return Leaf("wait for how the\nother one ends", "again")

    again = ("no, somebody\nwas quicker", Leaf("look at the record again", "again"))
    marking = Question("Claim it, as a possible\nduplicate. Had?", (("yes", below), again))
    claiming = Question("Claim it. Had?", (("yes", below), again))
    return continued(continued(explore(decide), marked, marking), fresh, claiming)


def _quota(below: Tree) -> Tree:
    quota = RateLimit(1)
    refused = _refused(over_quota(quota, 1000, _NOW))
    left = Question("Is a unit of it left?", (("yes", below), ("no", refused)))
    return Question("Is the source off the\nwarm path, with a quota?", (("no", below), ("yes", left)))


def _limit(below: Tree) -> Tree:
    over = explore(_over_limit)
    told = Question(
        "Is the limit in\nshadow mode?", (("no", over), ("yes, told by\nsnavio.command.over_limit", below))
    )
    left = Question("Is a unit of the limit left?", (("yes", below), ("no", told)))
    return Question("Has the route a limit?", (("no", below), ("yes", left)))


def _over_limit(oracle: Oracle) -> Leaf:
    banned = oracle.ask("Is the source off\nthe warm path?", {"yes": True, "no": False})
    sent_here = oracle.ask("Did a worker ban it\nfor dominance?", {"yes": DOMINANCE, "no": None})
    shares = oracle.ask(
        "Does it go on dominating?", {"yes": Shares(0.9, 0.1, 3, 100), "no": Shares(0.1, 0.9, 3, 100)}
    )
    refusal = over_limit(
        _ROUTE, RateLimit(1), 1000, banned=banned, shares=shares, dominance=sent_here, now=_NOW
    )
    return _refused(refusal)


def _sending() -> Tree:
    taken = Question(
        "Does the target's\nqueue take it?",
        (
            ("yes, the claim\nis committed", Leaf("snavio.command.delivered", "go")),
            ("no", explore(_after_failure)),
        ),
    )
    return Question(
        "Does the payload fit\ninto the target's queue?",
        (("yes", taken), ("no, left in S3\nin its place", taken)),
    )


def _after_failure(oracle: Oracle) -> Leaf:
    attempt: Any = _yes(oracle, "Was this the last try?")
    permanent: Any = _yes(oracle, "Is the queue gone, or\ndoes it refuse us?")
    match after_failed_send(COMMAND, attempt=attempt, permanent=permanent, cause="", policy=RetryPolicy()):
        case TryAgain():
            return Leaf("try again later,\nwith a longer pause", "again")
        case Refusal() as refusal:
            return Leaf(f"{_refused(refusal).text}\nand kept in the DLQ", "stop")


def _refused(refusal: Refusal) -> Leaf:
    more = f"\n{refusal.sub_reason}" if refusal.sub_reason else ""
    return Leaf(f"snavio.command.failed:\n{refusal.reason.value}{more}", "stop")
