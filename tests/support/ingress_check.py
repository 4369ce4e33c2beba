"""What must hold of every input to the ingress, whatever it is. Raises `Escape` where it does not."""

from __future__ import annotations

import json
import time
from collections import Counter

import msgspec
from ingress_corpus import NOW, POLICY, SIGNED, Registry, reference_canonical
from ingress_mutations import Case, make_case

from snavio.aws.values import Received
from snavio.dispatch.reports import invalid_event, unreadable_event
from snavio.domain.screening import Passed, Refused, Unreadable, screen
from snavio.replay.recovered import recover, replay_name
from snavio.shield.tracing import producer_context
from snavio.wire.commands import Admitted, decode_admitted, encode
from snavio.wire.events import InvalidReason, decode_event, encode_event
from snavio.wire.outbox import outbox_row

_REGISTRY = Registry()
_LONGEST_DETAIL = 300
_LONGEST_FACT = 256


class Escape(AssertionError):  # noqa: N818 - what happened
    """An input that got an answer nobody may get, or none at all."""


def check(case: Case) -> str:
    """The outcome of one input: `passed`, or its reason code."""
    try:
        found = screen(case.text, NOW, _REGISTRY, POLICY)
        producer_context(Received("m", "r", case.text, 1, NOW))
        recover(case.text)
        replay_name(case.text)
    except Exception as error:
        raise Escape(f"{type(error).__name__}: {error}") from error
    if isinstance(found, Passed):
        _check_signed(case, found.command)
        _check_carried(found.command)
        return "passed"
    if case.genuine:
        raise Escape(f"a genuine command was refused: {found}")
    _check_told(found)
    return found.reason.value if isinstance(found, Refused) else f"unreadable: {found.reason.value}"


def _check_signed(case: Case, command: Admitted) -> None:
    about = (command.source, command.id, command.timestamp, command.target, command.name)
    statements = {statement.about: statement for statement in case.signed}
    statement = statements.get(about) or SIGNED.get(about)
    if statement is None:
        raise Escape(f"accepted, and nobody signed it: {about}")
    raw = bytes(command.payload)
    if raw != statement.payload and reference_canonical(raw) != statement.payload:
        raise Escape(f"accepted with another payload than was signed: {raw[:200]!r}")


def _check_carried(command: Admitted) -> None:
    """What passed can be carried on, and reaches the target as JSON."""
    try:
        again = decode_admitted(encode(command))
        json.loads(bytes(again.payload), parse_int=len, parse_constant=_refuse)
    except RecursionError:
        pass  # deeper than Python's own reader goes; other readers may
    except Exception as error:
        raise Escape(f"passed, and cannot be carried: {type(error).__name__}: {error}") from error
    else:
        if msgspec.structs.replace(again, payload=command.payload) != command:
            raise Escape("passed on as something else")


def _refuse(name: str) -> None:
    raise ValueError(name)


def _check_told(found: Refused | Unreadable) -> None:
    """A refusal has a reason, one sentence, and an event that its tenant can read."""
    if not isinstance(found.reason, InvalidReason) or not 0 < len(found.detail) < _LONGEST_DETAIL:
        raise Escape(f"a refusal without a reason: {found}")
    if isinstance(found, Refused):
        facts = msgspec.structs.astuple(found.facts)
        if any(fact is not None and len(fact) > _LONGEST_FACT for fact in facts):
            raise Escape(f"a refusal that repeats its input: {found}")
        event = invalid_event(found, "m", tenant="acme", received_at=NOW, at=NOW)
    else:
        event = unreadable_event(found, "m", NOW)
    try:
        outbox_row(event, NOW)
        if decode_event(encode_event(event)) != event:
            raise Escape(f"a refusal told otherwise: {event}")
    except (ValueError, TypeError) as error:
        raise Escape(f"a refusal that cannot be told: {error}") from error


def run(seed: int, numbers: range) -> tuple[Counter[str], list[tuple[int, str]], float]:
    """Outcomes, escapes by number, and the longest time one input took."""
    outcomes: Counter[str] = Counter()
    escapes: list[tuple[int, str]] = []
    longest = 0.0
    for number in numbers:
        case = make_case(seed, number)
        began = time.perf_counter()
        try:
            outcomes[check(case)] += 1
        except Escape as escape:
            escapes.append((number, f"{case.kind}: {escape}"))
        longest = max(longest, time.perf_counter() - began)
    return outcomes, escapes, longest
