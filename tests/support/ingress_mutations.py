"""Inputs for the ingress, each a function of a seed and a number alone, so that any of them can be made again.

A case is a text, the statements that were signed for it and nowhere else, and whether it must be accepted.
"""

from __future__ import annotations

import json
import random
import unicodedata
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ingress_corpus import CORPUS, SECRETS, SEEDS, VECTORS, Statement, reference_canonical

from snavio.domain.screening import REPLAYER

TOKENS, STRINGS, NAMES = CORPUS["tokens"], CORPUS["strings"], CORPUS["names"]
_PRODUCERS = [owner for owner in SECRETS if owner[0] != REPLAYER]
_PARTS = ("id", "timestamp", "type", "version_id", "hmac", "target", "name", "source", "payload")
_DEEPEST = 3000


@dataclass(frozen=True)
class Case:
    """One input."""

    kind: str
    text: str
    signed: tuple[Statement, ...] = ()
    """Signed for this case; what the corpus signed counts for every case."""
    genuine: bool = False
    """It means exactly what was signed, so it has to pass."""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


def make_case(seed: int, number: int) -> Case:
    """The input with this number."""
    chance = random.Random(seed << 40 | number)
    kind = chance.choices(list(_KINDS), [weight for weight, _ in _KINDS.values()])[0]
    return _KINDS[kind][1](chance)


def _noise(chance: random.Random) -> Case:
    """Tokens in no order."""
    pieces = [chance.choice((*TOKENS, *STRINGS, *NAMES)) for _ in range(chance.randrange(12))]
    return Case("noise", "".join(pieces))


def _scratched(chance: random.Random) -> Case:
    """A signed event with a few places of its text changed."""
    text = chance.choice(SEEDS)[0]
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(text) + 1)
        to = min(len(text), at + chance.choice((0, 0, 1, 1, 2, 8, 40)))
        piece = chance.choice(
            (
                "",
                chance.choice(TOKENS),
                chr(chance.randrange(0x2100)),
                text[at:to] * 2,
                chance.choice(SEEDS)[0][at:to],
                text[at : at + 1].swapcase(),
            )
        )
        text = text[:at] + piece + text[to:]
    return Case("scratched", text)


def _spliced(chance: random.Random) -> Case:
    """The beginning of one signed event and the end of another."""
    one, two = chance.choice(SEEDS)[0], chance.choice(SEEDS)[0]
    cut = chance.randrange(len(one))
    return Case("spliced", one[:cut] + two[cut + chance.choice((0, 0, 0, -1, 1)) :])


def _misshapen(chance: random.Random) -> Case:
    """A signed event with a field removed, renamed, doubled or of another type."""
    event = json.loads(chance.choice(SEEDS)[0])
    for _ in range(chance.choice((1, 1, 2, 3))):
        place = chance.choice(_objects(event))
        name = chance.choice([*place, chance.choice(NAMES)])
        match chance.randrange(4):
            case 0:
                place.pop(name, None)
            case 1:
                place[chance.choice(NAMES)] = place.get(name)
            case 2:
                place[name] = chance.choice(STRINGS)
            case _:
                place[name] = chance.choice((None, True, 0, -1.5, [], {}, [place.get(name)], 10**30))
    text = json.dumps(event, ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.3:
        text = text.replace(
            '": ', f'": {chance.choice(TOKENS)}, "{chance.choice(NAMES)}": ', chance.randrange(9)
        )
    return Case("misshapen", text)


def _forged(chance: random.Random) -> Case:
    """A signed event aimed, numbered, dated or filled otherwise, its signature kept or tampered with."""
    body, statement = chance.choice(SEEDS)
    other_body, other = chance.choice(SEEDS)
    event, donor = json.loads(body), json.loads(other_body)
    part = chance.choice(_PARTS)
    place = (
        event
        if part == "source"
        else event["detail"]["command" if part in {"target", "name", "payload"} else "metadata"]
    )
    given: Any = place[part]
    if part == "payload":
        place[part] = chance.choice(
            (json.loads(other.payload), [given], {"payload": given}, _touched(given, chance))
        )
        return Case("forged", json.dumps(event))
    replacements: list[Any] = [
        _taken(donor, part),
        chance.choice(STRINGS),
        given + chance.choice(("\n", " ", "0", "\u0000", "\n{}")),
        chance.choice(("\n", " ", "")) + given,
        given.upper(),
        given[:-1],
        unicodedata.normalize(chance.choice(("NFD", "NFKC")), given),
        # The same line feeds between the same parts, divided elsewhere.
        f"{given}\n{chance.choice((statement.target, statement.name, statement.id))}",
        {"hmac": given[:32], "id": given.replace("-", "")}.get(part, given[::-1]),
    ]
    place[part] = chance.choice(replacements)
    if part == "target" and chance.random() < 0.3:
        place["target"], place["name"] = statement.name, statement.target
    return Case("forged", json.dumps(event))


def _hostile_payload(chance: random.Random) -> Case:
    """A producer that signs whatever it likes: raw, as it stands, or in canonical form."""
    depth = chance.choice((1, 1, 1, 10, 200, 900, 1100, _DEEPEST))
    text = chance.choice(TOKENS)
    for _ in range(chance.randrange(4)):
        text = chance.choice(
            (
                f"[{text},{chance.choice(TOKENS)}]",
                f'{{"a":{text}}}',
                f'{{"{chance.choice(NAMES)}":{text},"a":1}}',
            )
        )
    text = (
        chance.choice(("[", '{"a":')) * depth + text + chance.choice(("]", "}")) * depth
        if depth > 1
        else text
    )
    signed = text.encode(errors="replace")
    if chance.random() < 0.3:
        signed = reference_canonical(text) or signed
    statement = _new_statement(chance, signed)
    return Case("hostile payload", statement.event(text), (statement,))


def _reserialised(chance: random.Random) -> Case:
    """The same value written otherwise: it must still be genuine."""
    vector = chance.choice(VECTORS)
    statement = _new_statement(chance, vector["canonical"].encode())
    written = _respelt(json.loads(vector["payload_json"]), chance)
    return Case("reserialised", statement.event(written, more={"x": [1]}), (statement,), genuine=True)


_KINDS: dict[str, tuple[int, Callable[[random.Random], Case]]] = {
    "noise": (5, _noise),
    "scratched": (35, _scratched),
    "spliced": (10, _spliced),
    "misshapen": (15, _misshapen),
    "forged": (20, _forged),
    "hostile payload": (8, _hostile_payload),
    "reserialised": (7, _reserialised),
}
FORGERIES = ("forged", "scratched", "spliced")


def forgery(seed: int, number: int) -> Case:
    """The forgery with this number."""
    chance = random.Random(seed << 40 | number)
    return chance.choice((_forged, _forged, _forged, _scratched, _spliced))(chance)


def reserialisation(seed: int, number: int) -> Case:
    """The honest case with this number."""
    return _reserialised(random.Random(seed << 40 | number))


def _new_statement(chance: random.Random, payload: bytes) -> Statement:
    source, version_id = chance.choice(_PRODUCERS)
    fresh = str(uuid.UUID(int=chance.getrandbits(128)))
    return replace(SEEDS[0][1], source=source, version_id=version_id, id=fresh, payload=payload)


def _objects(event: Any) -> list[dict[str, Any]]:
    found = [event]
    for value in event.values():
        if isinstance(value, dict):
            found += _objects(value)
    return found


def _taken(event: Any, part: str) -> Any:
    return (
        event["source"]
        if part == "source"
        else {**event["detail"]["metadata"], **event["detail"]["command"]}[part]
    )


def _touched(value: Any, chance: random.Random) -> Any:
    """Almost the same value."""
    if isinstance(value, dict) and value:
        name = chance.choice(list(value))
        return {**value, name: _touched(value[name], chance)}
    if isinstance(value, list) and value:
        at = chance.randrange(len(value))
        return [*value[:at], _touched(value[at], chance), *value[at + 1 :]]
    if isinstance(value, str):
        return unicodedata.normalize(chance.choice(("NFC", "NFD")), value) + chance.choice(("", "\u200b"))
    if isinstance(value, bool) or value is None:
        return not value
    return str(value) if isinstance(value, int | float) else [value]


def _respelt(value: Any, chance: random.Random) -> str:
    """A JSON text of the value, as unlike its canonical form as the grammar allows."""
    space = chance.choice(("", "", " ", "\n\t"))
    if isinstance(value, dict):
        members = [
            f"{_respelt(name, chance)}{space}:{space}{_respelt(each, chance)}" for name, each in value.items()
        ]
        chance.shuffle(members)
        return f"{{{space}{f'{space},'.join(members)}{space}}}"
    if isinstance(value, list):
        return f"[{space}{f',{space}'.join(_respelt(each, chance) for each in value)}{space}]"
    if isinstance(value, str):
        return json.dumps(value) if chance.random() < 0.5 else _escaped(value, chance)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return _renumbered(value, chance)


def _renumbered(value: float, chance: random.Random) -> str:
    if value == 0:
        return chance.choice(("0", "-0", "0.0", "-0.0e7", "0E-9"))
    exact = 2**53
    if isinstance(value, int) and abs(value) <= exact:
        return chance.choice((str(value), f"{value}.0", f"{value}e0", f"{value}0E-1", f"{value}.000e+00"))
    return chance.choice((repr(value), f"{float(value):.17e}", f"{float(value):.25E}"))


def _escaped(text: str, chance: random.Random) -> str:
    units = text.encode("utf-16-be")
    form = chance.choice(("\\u{:04x}", "\\u{:04X}"))
    escapes = (form.format(int.from_bytes(units[at : at + 2])) for at in range(0, len(units), 2))
    return f'"{"".join(escapes)}"'
