"""Shield's screening, as a ladder of checks, its order found by trial.

For every pair of checks a message is made that fails both; which of the two is told says which comes first. The order
found must hold for messages that fail all checks from any one on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

import msgspec
from exploring import Leaf, Question, Tree

from snavio.domain.models import BanMode
from snavio.domain.screening import (
    REPLAYER,
    HeldKey,
    Passed,
    Refused,
    Screening,
    ScreeningPolicy,
    Unreadable,
    screen,
)
from snavio.wire.canonical import canonical
from snavio.wire.signing import SigningKey, framed
from snavio.wire.times import format_time

_SOURCE = "acme/billing"
_NOW = 1_800_000_000.0
_KEY = SigningKey(b"secret")


class Message:
    """A good message, with room for everything that can be wrong with it and with what is known of its sender."""

    def __init__(self) -> None:
        self.source = _SOURCE
        self.metadata: dict[str, Any] = {
            "id": "6f8a1c1e-0000-4000-8000-000000000000",
            "timestamp": format_time(_NOW),
            "type": "snavio.command-sent",
            "version_id": "hmac-v1",
        }
        self.command: dict[str, Any] = {"target": "bot", "name": "notify", "payload": {"a": 1}}
        self.wrap: set[str] = set()
        """Parts that become a list of themselves, and are no longer objects."""
        self.drop: set[str] = set()
        self.cut = False
        self.replace = ("", "")
        self.signed = True
        self.forged = False
        self.arrived = _NOW
        self.policy = ScreeningPolicy()
        self.known_keys = {_SOURCE, REPLAYER}
        self.knows = True
        self.not_after: float | None = None
        self.banned = False
        self.fault: str | None = None

    def body(self) -> str:
        """The text that arrives."""
        metadata, command = dict(self.metadata), dict(self.command)
        names = (
            metadata["version_id"],
            metadata["id"],
            metadata["timestamp"],
            command["target"],
            command["name"],
        )
        frame = framed(*(str(name) for name in names))
        key = SigningKey(b"another") if self.forged else _KEY
        metadata["hmac"] = key.sign(frame, canonical(command["payload"])) if self.signed else ""
        for field in self.drop:
            metadata.pop(field, None)
        detail: Any = {"metadata": metadata, "command": command}
        for part in ("metadata", "command"):
            if part in self.wrap:
                detail[part] = [detail[part]]
            if part in self.drop:
                del detail[part]
        event: Any = {"source": self.source, "detail": [detail] if "detail" in self.wrap else detail}
        if "source" in self.drop:
            del event["source"]
        text = json.dumps([event] if "event" in self.wrap else event).replace(*self.replace, 1)
        return text[:-1] if self.cut else text

    # What screening asks of the registry.
    def knows_source(self, source: str) -> bool:
        """Whether any key is registered for the source."""
        del source
        return self.knows

    def key(self, source: str, version_id: str) -> HeldKey | None:
        """One version of a source's key."""
        del version_id
        return HeldKey(_KEY, self.not_after, legacy=False) if source in self.known_keys else None

    def ban_mode(self, source: str, now: float) -> BanMode | None:
        """The ban in force."""
        del source, now
        return BanMode.OUTRIGHT if self.banned else None

    def validator(self, target: str, command: str, now: float) -> Callable[[msgspec.Raw], str | None]:
        """The check of the payload."""
        del target, command, now
        return lambda _: self.fault


Spoil = Callable[[Message], object]


def _sets(**fields: Any) -> Spoil:
    return lambda message: [setattr(message, name, value) for name, value in fields.items()]


def _metadata(**fields: Any) -> Spoil:
    return lambda message: message.metadata.update(fields)


def _command(**fields: Any) -> Spoil:
    return lambda message: message.command.update(fields)


CHECKS: dict[str, list[Spoil]] = {
    "Does its payload fit\nthe command's schema?": [_sets(fault="no")],
    "Is it JSON?": [_sets(cut=True)],
    "Is it an object\nwith a source?": [lambda m: m.wrap.add("event"), lambda m: m.drop.add("source")],
    "Are metadata and\ncommand in it?": [
        lambda m: m.wrap.add("detail"),
        lambda m: m.drop.add("metadata"),
        lambda m: m.wrap.add("metadata"),
        lambda m: m.drop.add("command"),
        lambda m: m.wrap.add("command"),
    ],
    "Is command.source\nleft to the platform?": [_command(source="acme/other")],
    "Is every field there,\nand of its type?": [
        lambda m: m.drop.add("version_id"),
        lambda m: m.drop.add("hmac"),
        _metadata(version_id=1),
        _metadata(correlation_id=1),
        _metadata(replayed="yes"),
    ],
    "Is its text\nwhole Unicode?": [_metadata(tracestate="\ud800")],
    "Are type, id, target and\nname well formed, and\nis it signed at all?": [
        _metadata(type="other"),
        _metadata(id="7"),
        _sets(signed=False),
        _command(target="No Name"),
        _command(name="No Name"),
    ],
    "Is it small enough to\nbe carried on?": [_sets(policy=ScreeningPolicy(max_bytes=10))],
    "Is its timestamp a time?": [_metadata(timestamp="noon")],
    "Is its timestamp near\nenough to its arrival?": [_sets(arrived=_NOW + 61)],
    "Is its source of the\nform tenant/service?": [_sets(source="acme")],
    "Is its key known?": [
        _sets(known_keys=set(), knows=False),
        _sets(known_keys=set()),
        lambda m: (m.metadata.update(replay_reason="x"), m.known_keys.discard(REPLAYER)),
    ],
    "If it is a replay, does\nit say which?": [_metadata(replay_reason="because")],
    "Is the key in force?": [_sets(not_after=_NOW - 1)],
    "Has its payload a\ncanonical form?": [_sets(replace=('{"a": 1}', '{"a": 1, "a": 1}'))],
    "Does its signature match?": [_sets(forged=True)],
    "May its source send\nat all?": [_sets(banned=True)],
}
"""Each check with ways to fail it; in no order that means anything."""


_PROOF = "Is its timestamp near\nenough to its arrival?"


def shield_trees() -> dict[str, Tree]:
    """From the ingress queue to the fast queue: its form, then its proof."""
    order = _order()
    cut = order.index(_PROOF)
    return {
        "its form": _ladder(order[:cut], Leaf("see: its proof", "next")),
        "its proof": _ladder(order[cut:], Leaf("genuine:\npass it on to fast", "go")),
    }


def _ladder(order: list[str], tree: Tree) -> Tree:
    for check in reversed(order):
        tree = Question(check, (("no", _outcome(check)), ("yes", tree)))
    return tree


def _order() -> list[str]:
    if not isinstance(_screened(), Passed):
        raise TypeError("a message with nothing wrong was refused")
    order = sorted(CHECKS, key=cmp_to_key(_precedence))
    for place, check in enumerate(order):
        all_from_here = [CHECKS[later][0] for later in order[place:]]
        if _told(_screened(*all_from_here)) not in _tellings(check):
            raise ValueError(f"the checks of shield stand in no fixed order: see {check!r}")
    return order


def _screened(*spoils: Spoil) -> Screening:
    message = Message()
    for spoil in spoils:
        spoil(message)
    return screen(message.body(), message.arrived, message, message.policy)


def _told(screening: Screening) -> tuple[str, str]:
    if isinstance(screening, Passed):
        raise TypeError("a message with something wrong was passed on")
    return screening.reason.value, re.sub(r"\d+", "", screening.detail)


def _tellings(check: str) -> set[tuple[str, str]]:
    return {_told(_screened(spoil)) for spoil in CHECKS[check]}


def _precedence(one: str, other: str) -> int:
    """-1 when `one` is always told where both fail, 1 when it never is."""
    mine, theirs = _tellings(one), _tellings(other)
    told = {_told(_screened(a, b)) for a in CHECKS[one] for b in CHECKS[other]}
    told |= {_told(_screened(b, a)) for a in CHECKS[one] for b in CHECKS[other]}
    if told <= mine:
        return -1
    if told <= theirs:
        return 1
    raise ValueError(f"neither of {one!r} and {other!r} always comes first: {told}")


def _outcome(check: str) -> Leaf:
    found = [_screened(spoil) for spoil in CHECKS[check]]
    reasons = "\n".join(dict.fromkeys(_told(one)[0] for one in found))
    if all(isinstance(one, Unreadable) for one in found):
        return Leaf(f"snavio.command.invalid:\n{reasons}\ntold to operators,\nand kept in the DLQ", "stop")
    if all(isinstance(one, Refused) and one.provisional for one in found):
        reasons += "\nonce the registry\nis read afresh"
    return Leaf(f"snavio.command.invalid:\n{reasons}", "stop")
