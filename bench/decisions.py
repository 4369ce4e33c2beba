"""What a decision costs: shield's and fast's, beside the floor of the same run and what validating costs elsewhere.

The floor is the least code that does the whole governed job: decode only what is needed, compute and compare the signature
from pre-keyed states, read the timestamp, look up key, route and grant, encode for the target. No check that could be left
out, no reason given, no layer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hmac import compare_digest, digest
from typing import Any

import msgspec
from aws_lambda_powertools.utilities.parser import envelopes, parse
from figures import Row, Sizes, alternating
from pydantic import BaseModel
from samples import NAME, NOW, SECRET, SOURCE, TARGET, bus_event
from stock import Shape, registry_of

from snavio.dispatch.reports import delivered_event
from snavio.dispatch.targets import target_message
from snavio.domain.dedupe import HandedOn, SeenIds
from snavio.domain.fairness import FairnessWindows
from snavio.domain.models import DispatchMode, Route
from snavio.domain.screening import HeldKey, ScreeningPolicy, screen
from snavio.domain.warm import Deliver, decide_warm
from snavio.registry.uses import GrantUse, GrantUses
from snavio.registry.view import Registry
from snavio.wire.commands import Admitted, decode_admitted, encode
from snavio.wire.outbox import outbox_row
from snavio.wire.signing import SigningKey
from snavio.wire.times import format_time

SECTION = "Decisions, CPU a command"
MOST_MICROSECONDS, MOST_RATIO = 12.0, 1.5
TARGET_TEXT = "≤ 12 µs and ≤ 1.5 × the floor"


class Local:
    """A fast worker's memory, with nothing in the way."""

    def __init__(self) -> None:
        self.windows = FairnessWindows("bench")
        self.seen = SeenIds(remember_seconds=300)

    def seen_by(self, command: Admitted, now: float) -> HandedOn | None:
        return self.seen.find(command.id, now)

    def local_ban(self, command: Admitted, now: float) -> Any:
        return self.windows.ban((command.target, command.name), command.source, now)

    def take_unit(self, route: Route, now: float) -> bool:
        return True


class _Metadata(msgspec.Struct, gc=False):
    id: str
    timestamp: str
    version_id: str
    hmac: str


class _Command(msgspec.Struct, gc=False):
    target: str
    name: str
    payload: msgspec.Raw


class _Detail(msgspec.Struct, gc=False):
    metadata: _Metadata
    command: _Command


class _Event(msgspec.Struct, gc=False):
    source: str
    detail: _Detail


class _Passed(msgspec.Struct, gc=False):
    source: str
    id: str
    timestamp: str
    target: str
    name: str
    received_at: float
    payload: msgspec.Raw


class _SentMetadata(msgspec.Struct, gc=False):
    id: str
    timestamp: str
    type: str
    path: str
    dispatched_at: str


class _SentCommand(msgspec.Struct, gc=False):
    source: str
    target: str
    name: str
    payload: msgspec.Raw


class _Sent(msgspec.Struct, gc=False):
    metadata: _SentMetadata
    command: _SentCommand


class PydanticMetadata(BaseModel):
    """As a service that validates with pydantic would declare it."""

    id: str
    timestamp: datetime
    type: str
    version_id: str
    hmac: str


class PydanticBody(BaseModel):
    """See `PydanticMetadata`."""

    target: str
    name: str
    payload: dict[str, Any]


class PydanticCommand(BaseModel):
    """See `PydanticMetadata`."""

    metadata: PydanticMetadata
    command: PydanticBody


class PydanticEvent(BaseModel):
    """See `PydanticMetadata`."""

    source: str
    detail: PydanticCommand


class Floor:
    """The whole governed job, and each service's part of it."""

    def __init__(self, event: str, passed: str) -> None:
        self._event = event
        self._passed = passed
        self._decode = msgspec.json.Decoder(_Event).decode
        self._decode_passed = msgspec.json.Decoder(_Passed).decode
        self._encode = msgspec.json.Encoder().encode
        block = SECRET.ljust(64, b"\0")
        inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
        self._keys = {(SOURCE, "hmac-v1"): (inner, outer)}
        self._routes = {(TARGET, NAME): "queue"}
        self._grants = {(SOURCE, TARGET, NAME): 1}
        self._at = format_time(NOW)

    def whole(self) -> str:
        """Decode, sign and compare, read the timestamp, look up key, route and grant, encode for the target."""
        return self._for_target(self._verified())

    def shield(self) -> str:
        """The same up to the signature, encoded for fast."""
        return self._encode(self._verified()).decode()

    def fast(self) -> str:
        """Decode what shield encoded, look up route and grant, encode for the target."""
        return self._for_target(self._decode_passed(self._passed))

    def _verified(self) -> _Passed:
        event = self._decode(self._event)
        source, metadata, command = event.source, event.detail.metadata, event.detail.command
        version, command_id, timestamp = metadata.version_id, metadata.id, metadata.timestamp
        target, name, payload = command.target, command.name, command.payload
        inner, outer = self._keys[source, version]
        first, second = inner.copy(), outer.copy()
        first.update(f"SNAVIO1\n{version}\n{command_id}\n{timestamp}\n{target}\n{name}\n".encode())
        first.update(payload)
        second.update(first.digest())
        genuine = compare_digest(second.hexdigest(), metadata.hmac)
        if not genuine or abs(datetime.fromisoformat(timestamp).timestamp() - NOW) > 60:
            raise SystemExit("the floor refused its command")
        return _Passed(source, command_id, timestamp, target, name, NOW, payload)

    def _for_target(self, one: _Passed) -> str:
        source, target, name = one.source, one.target, one.name
        if (target, name) not in self._routes or (source, target, name) not in self._grants:
            raise SystemExit("the floor refused its command")
        metadata = _SentMetadata(one.id, one.timestamp, "snavio.command-sent", "fast", self._at)
        return self._encode(_Sent(metadata, _SentCommand(source, target, name, one.payload))).decode()


def usual_way(body: str) -> Callable[[], object]:
    """Shield's job as it is usually written: json, hmac, json."""

    def work() -> str:
        event = json.loads(body)
        metadata, command = event["detail"]["metadata"], event["detail"]["command"]
        payload = json.dumps(command["payload"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        parts = ["SNAVIO1", *(metadata[key] for key in ("version_id", "id", "timestamp"))]
        message = "\n".join([*parts, command["target"], command["name"], payload])
        compare_digest(digest(SECRET, message.encode(), "sha256").hex(), metadata["hmac"])
        datetime.fromisoformat(metadata["timestamp"]).astimezone(UTC).timestamp()
        return json.dumps({"source": event["source"], **metadata, **command})

    return work


def screening_registry() -> Registry:
    """A shield's registry with one source and its key, opened."""
    registry = registry_of(Shape())
    registry.as_of = NOW
    registry._held[SOURCE, "hmac-v1"] = HeldKey(SigningKey(SECRET), None, legacy=False)  # noqa: SLF001 - no KMS here
    return registry


def measure(sizes: Sizes) -> Iterator[Row]:
    """Shield, fast, their floors and their alternatives, taking turns."""
    body, rewritten = bus_event(), bus_event(as_the_bus_writes_it=True)
    policy, keys = ScreeningPolicy(), screening_registry()
    known, local, at_text = registry_of(Shape()), Local(), format_time(NOW)
    known.as_of = NOW
    uses = GrantUses(most=10_000)
    internal = encode(screen(body, NOW, keys, policy).command)  # type: ignore[union-attr, arg-type]
    command = decode_admitted(internal)

    def shield(text: str) -> Callable[[], object]:
        return lambda: encode(screen(text, NOW, keys, policy).command)  # type: ignore[union-attr, arg-type]

    def fast() -> object:
        decoded = decode_admitted(internal)
        decision = decide_warm(decoded, "m", known, local, DispatchMode.ADAPTIVE, NOW)
        if not isinstance(decision, Deliver):
            raise SystemExit(f"fast did not deliver: {decision}")
        route = decision.route
        uses.note(GrantUse(decoded.source, route.target, route.command, decoded.id, NOW, 0.0))
        local.windows.record((route.target, route.command), decoded.source, route.fairness, NOW)
        return target_message(decoded, path="fast", at_text=at_text)

    def report() -> object:
        event = delivered_event(command, "message-id", path="fast", at=NOW, at_text=at_text)
        return outbox_row(event, NOW)

    floor = Floor(body, internal)
    found = alternating(
        {
            "whole floor": floor.whole,
            "shield floor": floor.shield,
            "fast floor": floor.fast,
            "shield": shield(body),
            "shield rewritten": shield(rewritten),
            "usual": usual_way(body),
            "pydantic": lambda: PydanticEvent.model_validate_json(body),
            "powertools": lambda: parse(json.loads(body), PydanticCommand, envelopes.EventBridgeEnvelope),
            "fast": fast,
            "report": report,
        },
        rounds=sizes.rounds,
        calls=sizes.calls,
    )

    def row(what: str, key: str, *, judged: bool = False, note: str = "") -> Row:
        cost, ratio = found[key], found[key] / found["whole floor"]
        is_floor = key == "whole floor"
        return Row(
            section=SECTION,
            what=what,
            value=round(cost, 2),
            unit="µs",
            beside="" if is_floor else "the floor",
            ratio=None if is_floor else round(ratio, 2),
            target=TARGET_TEXT if judged else "",
            met=(cost <= MOST_MICROSECONDS and ratio <= MOST_RATIO) if judged else None,
            note=note,
        )

    yield row(
        "the floor: the whole governed job",
        "whole floor",
        note="decode, sign and compare, timestamp, lookups, encode",
    )
    yield row("shield's part of the floor", "shield floor")
    yield row("fast's part of the floor", "fast floor", note="with a decode of its own")
    yield row(
        "shield: screen and pass on",
        "shield",
        judged=True,
        note=f"{found['shield'] / found['shield floor']:.1f} × its own part of the floor",
    )
    yield row(
        "shield: the same, payload serialised anew by the bus",
        "shield rewritten",
        note="canonicalised to verify",
    )
    yield row(
        "fast: decide, count and write for the target",
        "fast",
        judged=True,
        note=f"{found['fast'] / found['fast floor']:.1f} × its own part of the floor",
    )
    yield row("fast: event and outbox row", "report", note="what telling the sender adds")
    yield row(
        "the usual way of shield's job (json, hmac, json)", "usual", note="checks the signature, nothing else"
    )
    yield row(
        "pydantic v2: decode and validate alone", "pydantic", note="no signature, no lookups, no encoding"
    )
    yield row(
        "Powertools parser: decode and validate alone", "powertools", note="EventBridge envelope, as above"
    )
