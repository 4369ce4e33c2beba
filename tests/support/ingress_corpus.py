"""What the ingress is fuzzed from: commands that were really signed, and a list of every statement a key was put to.

The signatures are made here with the standard library and an independent RFC 8785, not with the code under test.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785

from snavio.domain.screening import REPLAYER, HeldKey, ScreeningPolicy
from snavio.wire.signing import SigningKey
from snavio.wire.times import parse_time

_ROOT = Path(__file__).parents[2]
VECTORS: list[dict[str, str]] = json.loads((_ROOT / "docs/reference/signature-vectors.json").read_text())[
    "vectors"
]
CORPUS: dict[str, list[str]] = json.loads((_ROOT / "tests/fuzz/corpus.json").read_text())
"""Texts and tokens that broke a JSON reader somewhere."""

NOW = parse_time(VECTORS[0]["timestamp"]) or 0.0
POLICY = ScreeningPolicy(sample_rate=0.1)

_SECRET = base64.b64decode(VECTORS[0]["secret_b64"])
SECRETS = {
    ("acme/billing", "hmac-v1"): _SECRET,
    ("acme/billing", "hmac-v2"): b"the next key of the same source",
    ("acme/ledger", "hmac-v1"): b"a neighbour within the tenant",
    ("rival/billing", "hmac-v1"): b"the same name in another tenant",
    (REPLAYER, "hmac-v1"): b"the platform's own key",
}
EXPIRED = ("acme/billing", "hmac-v0")


class Registry:
    """What screening knows here: five keys, one that has ended, nobody banned, no schema."""

    def __init__(self) -> None:
        self._keys = {
            owner: HeldKey(SigningKey(secret), None, legacy=False) for owner, secret in SECRETS.items()
        }
        self._keys[EXPIRED] = HeldKey(SigningKey(_SECRET), NOW - 1, legacy=True)
        self._sources = {source for source, _ in self._keys}

    def knows_source(self, source: str) -> bool:
        return source in self._sources

    def key(self, source: str, version_id: str) -> HeldKey | None:
        return self._keys.get((source, version_id))

    def ban_mode(self, source: str, now: float) -> None:
        return None

    def validator(self, target: str, command: str, now: float) -> None:
        return None


@dataclass(frozen=True)
class Statement:
    """What the holder of a key signed: this payload, from this source, to this target under this id."""

    source: str
    version_id: str
    id: str
    timestamp: str
    target: str
    name: str
    payload: bytes
    """What went into the signature after the frame."""

    @property
    def about(self) -> tuple[str, str, str, str, str]:
        """All of it but the payload."""
        return self.source, self.id, self.timestamp, self.target, self.name

    def signature(self, *, signer: str | None = None) -> str:
        """Plain HMAC-SHA256 over the parts, a line feed between each."""
        parts = ["SNAVIO1", self.version_id, self.id, self.timestamp, self.target, self.name, ""]
        if signer == REPLAYER:
            parts = ["SNAVIO1-REPLAY", self.source, *parts]
        secret = SECRETS[signer or self.source, self.version_id]
        return hmac.new(secret, "\n".join(parts).encode() + self.payload, hashlib.sha256).hexdigest()

    def event(self, payload_text: str, *, signer: str | None = None, **metadata: Any) -> str:
        """The bus event that carries it, the payload written as given."""
        detail = {
            "metadata": {
                "id": self.id,
                "timestamp": self.timestamp,
                "type": "snavio.command-sent",
                "version_id": self.version_id,
                "hmac": self.signature(signer=signer),
                **metadata,
            },
            "command": {"target": self.target, "name": self.name, "payload": "PAYLOAD"},
        }
        event = {
            "version": "0",
            "source": self.source,
            "detail-type": "snavio.command-sent",
            "detail": detail,
        }
        return json.dumps(event).replace('"PAYLOAD"', payload_text, 1)


def reference_canonical(text: bytes | str) -> bytes | None:
    """The RFC 8785 form by the independent implementation; None where there is none."""
    try:
        return rfc8785.dumps(
            json.loads(text, parse_int=_number, parse_constant=_refuse, object_pairs_hook=_once)
        )
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        return None


def _number(text: str) -> float | int:
    # A number is a double to RFC 8785, and Python's longest integers cannot be read at all.
    exact = 15
    return int(text) if len(text) <= exact else float(text)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the same name twice")
    return found


def _seeds() -> tuple[list[tuple[str, Statement]], dict[tuple[str, str, str, str, str], Statement]]:
    chance = random.Random(8785)
    found: list[tuple[str, Statement]] = []
    for vector in VECTORS:
        if base64.b64decode(vector["secret_b64"]) != _SECRET:
            continue
        for source, version_id in SECRETS:
            replayed = source == REPLAYER
            statement = Statement(
                source="acme/billing" if replayed else source,
                version_id=version_id,
                id=str(uuid.UUID(int=chance.getrandbits(128))),
                timestamp=vector["timestamp"],
                target=vector["target"],
                name=vector["command"],
                payload=vector["canonical"].encode(),
            )
            marks = {"replayed": True, "replay_id": "r-1"} if replayed else {"correlation_id": "c-1"}
            body = statement.event(vector["payload_json"], signer=REPLAYER if replayed else None, **marks)
            found.append((body, statement))
    return found, {statement.about: statement for _, statement in found}


SEEDS, SIGNED = _seeds()
"""Signed events with what each says, and every statement by all but its payload."""
