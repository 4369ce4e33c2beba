"""Screening gives every input its answer: each reason code, no escape, no forgery."""

import json
import uuid

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.domain.models import BanMode
from snavio.domain.screening import (
    REPLAYER,
    HeldKey,
    Passed,
    Refused,
    ScreeningPolicy,
    Unreadable,
    screen,
)
from snavio.wire.canonical import canonical
from snavio.wire.events import InvalidReason
from snavio.wire.signing import SigningKey, framed, framed_replay
from snavio.wire.times import format_time

NOW = 1_800_000_000.0
SOURCE = "acme/billing"
KEY = SigningKey(b"current")
POLICY = ScreeningPolicy(sample_rate=0.0)


class Registry:
    def __init__(self):
        self.keys = {
            (SOURCE, "hmac-v2"): HeldKey(KEY, None, legacy=False),
            (SOURCE, "hmac-v1"): HeldKey(SigningKey(b"previous"), NOW + 3600, legacy=True),
            (SOURCE, "hmac-v0"): HeldKey(SigningKey(b"expired"), NOW - 1, legacy=True),
            (REPLAYER, "replay-v1"): HeldKey(SigningKey(b"platform"), None, legacy=False),
        }
        self.banned = None
        self.fault = None

    def knows_source(self, source):
        return any(source == known for known, _ in self.keys)

    def key(self, source, version_id):
        return self.keys.get((source, version_id))

    def ban_mode(self, source, now):
        return self.banned

    def validator(self, target, command, now):
        return None if self.fault is None else lambda payload: self.fault


def event(payload=None, *, key=KEY, source=SOURCE, version_id="hmac-v2", at=NOW, **metadata):
    command_id, timestamp = str(uuid.uuid4()), format_time(at)
    parts = (version_id, command_id, timestamp, "discord-bot", "notify-user")
    frame = framed_replay(source, framed(*parts)) if metadata.get("replayed") else framed(*parts)
    signature = key.sign(frame, canonical(payload))
    return {
        "version": "0",
        "source": source,
        "detail-type": "snavio.command-sent",
        "detail": {
            "metadata": {
                "id": command_id,
                "timestamp": timestamp,
                "type": "snavio.command-sent",
                "version_id": version_id,
                "hmac": signature,
                **metadata,
            },
            "command": {"target": "discord-bot", "name": "notify-user", "payload": payload},
        },
    }


def screened(given, registry=None, policy=POLICY):
    body = given if isinstance(given, str) else json.dumps(given)
    return screen(body, NOW, registry or Registry(), policy)


def changed(path, value, base=None):
    found = base or event({"a": 1})
    place = found
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return found


def without(path):
    found = event({"a": 1})
    place = found
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return found


META, COMMAND = ("detail", "metadata"), ("detail", "command")


def test_a_genuine_command_passes_with_the_authenticated_source():
    passed = screened(event({"b": 1e3, "a": "ü"}, correlation_id="c", schema_version="1.0"))
    assert isinstance(passed, Passed)
    assert passed.command.source == SOURCE
    assert json.loads(bytes(passed.command.payload)) == {"b": 1000, "a": "ü"}
    assert (passed.command.correlation_id, passed.command.received_at) == ("c", NOW)
    assert passed.skew is None
    assert passed.key is None


@pytest.mark.parametrize("payload", [None, 0, "", [], {}, False, [[[]]], {"": None}])
def test_any_json_is_a_payload(payload):
    assert isinstance(screened(event(payload)), Passed)


def test_unknown_fields_are_tolerated():
    assert isinstance(screened(changed((*META, "future"), {"x": [1]})), Passed)
    assert isinstance(screened(changed(("detail", "more"), 1)), Passed)


REFUSALS = [
    ("detail-missing", without(("detail",)), InvalidReason.WRONG_TYPE),
    ("detail-text", changed(("detail",), "{}"), InvalidReason.WRONG_TYPE),
    ("metadata-missing", without(META), InvalidReason.MISSING_FIELD),
    ("command-missing", without(COMMAND), InvalidReason.MISSING_FIELD),
    ("metadata-list", changed(META, []), InvalidReason.WRONG_TYPE),
    ("command-null", changed(COMMAND, None), InvalidReason.WRONG_TYPE),
    *[(f"{field}-missing", without((*META, field)), InvalidReason.MISSING_FIELD) for field in ("id", "timestamp", "type", "version_id")],
    *[(f"{field}-missing", without((*COMMAND, field)), InvalidReason.MISSING_FIELD) for field in ("target", "name", "payload")],
    *[
        (f"{field}-{type(value).__name__}", changed((*META, field), value), InvalidReason.WRONG_TYPE)
        for field in ("id", "timestamp", "type", "version_id", "hmac", "correlation_id", "traceparent", "replay_id")
        for value in (1, [], {}, True)
    ],
    *[(f"{field}-number", changed((*COMMAND, field), 1), InvalidReason.WRONG_TYPE) for field in ("target", "name")],
    ("replayed-text", changed((*META, "replayed"), "yes"), InvalidReason.WRONG_TYPE),
    ("hmac-missing", without((*META, "hmac")), InvalidReason.HMAC_MISSING),
    ("hmac-empty", changed((*META, "hmac"), ""), InvalidReason.HMAC_MISSING),
    ("source-in-payload", changed((*COMMAND, "source"), SOURCE), InvalidReason.SOURCE_IN_PAYLOAD),
    ("source-null-in-payload", changed((*COMMAND, "source"), None), InvalidReason.SOURCE_IN_PAYLOAD),
    ("type", changed((*META, "type"), "other"), InvalidReason.BAD_FIELD),
    ("id", changed((*META, "id"), "not-a-uuid"), InvalidReason.BAD_FIELD),
    ("id-line-feed", changed((*META, "id"), str(uuid.uuid4()) + "\n"), InvalidReason.BAD_FIELD),
    ("timestamp", changed((*META, "timestamp"), "yesterday"), InvalidReason.BAD_FIELD),
    ("timestamp-no-offset", changed((*META, "timestamp"), "2027-01-15T08:00:00"), InvalidReason.BAD_FIELD),
    ("target", changed((*COMMAND, "target"), "Not A Target"), InvalidReason.BAD_FIELD),
    ("name", changed((*COMMAND, "name"), "x" * 128), InvalidReason.BAD_FIELD),
    ("late", event(at=NOW - 61), InvalidReason.TIMESTAMP_OUT_OF_WINDOW),
    ("early", event(at=NOW + 61), InvalidReason.TIMESTAMP_OUT_OF_WINDOW),
    ("stranger", event(source="mallory/spoof"), InvalidReason.UNKNOWN_SOURCE),
    ("no-source-form", event(source="aws.ec2"), InvalidReason.UNKNOWN_SOURCE),
    ("unknown-key", event(version_id="hmac-v9"), InvalidReason.HMAC_UNKNOWN_KEY),
    ("expired-key", event(version_id="hmac-v0", key=SigningKey(b"expired")), InvalidReason.HMAC_EXPIRED_KEY),
    ("wrong-secret", event(key=SigningKey(b"guess")), InvalidReason.HMAC_MISMATCH),
    ("payload-changed", changed((*COMMAND, "payload"), {"a": 2}), InvalidReason.HMAC_MISMATCH),
    ("upper-case-hmac", changed((*META, "hmac"), "AB" * 32), InvalidReason.HMAC_MISMATCH),
    ("forged-replay", event(replayed=True, replay_id="r"), InvalidReason.BAD_FIELD),
    ("forged-replay-reason", event(replay_reason="r"), InvalidReason.BAD_FIELD),
    ("too-large", event("x" * 1_100_000), InvalidReason.TOO_LARGE),
    ("replayer-live", event(version_id="replay-v1", key=SigningKey(b"platform")), InvalidReason.HMAC_UNKNOWN_KEY),
    ("replayer-as-source", event(source=REPLAYER, version_id="replay-v1", key=SigningKey(b"platform")), InvalidReason.UNKNOWN_SOURCE),
    ("replay-without-source-form", event(source="aws.ec2", version_id="replay-v1", key=SigningKey(b"platform"), replayed=True, replay_id="r"), InvalidReason.UNKNOWN_SOURCE),
    ("line-feed-in-version", event(version_id="hmac-v2\n"), InvalidReason.HMAC_UNKNOWN_KEY),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_event", "reason"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_every_fault_has_its_reason(given_event, reason):
    refused = screened(given_event)
    assert isinstance(refused, Refused)
    assert refused.reason is reason
    assert refused.facts.source == given_event["source"]
    assert refused.detail
    assert len(refused.detail) < 300


def test_the_reasons_that_need_a_registry():
    registry = Registry()
    registry.banned = BanMode.OUTRIGHT
    assert screened(event(), registry).reason is InvalidReason.SOURCE_BANNED
    registry.banned = BanMode.WARM
    assert isinstance(screened(event(), registry), Passed)
    registry.fault = "payload.x is missing"
    refused = screened(event(), registry)
    assert (refused.reason, refused.detail) == (InvalidReason.SCHEMA_VIOLATION, "payload.x is missing")


def test_every_reason_code_is_covered_here():
    covered = {case[2] for case in REFUSALS} | {
        InvalidReason.SOURCE_BANNED,
        InvalidReason.SCHEMA_VIOLATION,
        InvalidReason.MALFORMED_JSON,
    }
    assert covered == set(InvalidReason)


@pytest.mark.parametrize(
    "body",
    [
        "", " ", "not json", "nul", "{", '{"a"', "[" * 1_000_000, '{"a":' * 100_000, "NaN", "[]", '"text"', "1", "null",
        "{}", '{"source":1}', '{"source":null,"detail":{}}', '{"detail":{}}', "\ud800", "\x00", "\ufeff{}",
    ],
)  # fmt: skip
def test_what_is_no_bus_event_is_unreadable(body):
    assert isinstance(screened(body), Unreadable)


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", '"\\ud800"', "01", "1.", "'x'", "[1,]", "[" * 50_000]
)
def test_a_payload_that_is_not_json_is_malformed(text):
    body = json.dumps(event("HERE")).replace('"HERE"', text)
    found = screened(body)
    assert not isinstance(found, Passed)
    assert found.reason is InvalidReason.MALFORMED_JSON


def test_a_payload_with_the_same_name_twice_is_refused():
    body = json.dumps(event({"a": 1})).replace('{"a": 1}', '{"a": 2, "a": 1}')
    assert screened(body).reason is InvalidReason.BAD_FIELD


def test_of_a_field_given_twice_the_one_that_is_signed_is_delivered():
    genuine = event({"a": 1})
    body = json.dumps(genuine).replace(
        '"target": "discord-bot"', '"target": "victim", "target": "discord-bot"'
    )
    passed = screened(body)
    assert isinstance(passed, Passed)
    assert passed.command.target == "discord-bot"
    body = json.dumps(genuine).replace(
        '"target": "discord-bot"', '"target": "discord-bot", "target": "victim"'
    )
    assert screened(body).reason is InvalidReason.HMAC_MISMATCH


def test_a_replayed_command_signed_by_the_platform_passes_and_says_so():
    passed = screened(
        event(
            version_id="replay-v1",
            key=SigningKey(b"platform"),
            replayed=True,
            replay_id="r-1",
            replay_reason="outage",
        )
    )
    assert isinstance(passed, Passed)
    assert (passed.command.replay.id, passed.command.replay.reason) == ("r-1", "outage")


def test_a_replayed_command_cannot_be_passed_off_as_another_sources():
    replay = event(
        version_id="replay-v1",
        key=SigningKey(b"platform"),
        replayed=True,
        replay_id="r-1",
        replay_reason="outage",
    )
    assert screened({**replay, "source": "acme/ledger"}).reason is InvalidReason.HMAC_MISMATCH


def test_what_a_newer_registry_might_allow_is_said_to_be_provisional():
    assert screened(event(source="acme/new")).provisional
    assert screened(event(version_id="hmac-v3")).provisional
    assert not screened(event(key=SigningKey(b"guess"))).provisional


@pytest.mark.parametrize(
    ("skew", "near"), [(0, None), (47, None), (48, True), (60, True), (-48, True), (-47.9, None)]
)
def test_a_clock_near_the_limit_is_reported(skew, near):
    passed = screened(event(at=NOW - skew))
    assert (passed.skew.near_limit if passed.skew else None) is near


def test_about_the_sampled_part_of_messages_is_sampled():
    policy = ScreeningPolicy(sample_rate=0.25)
    sampled = sum(screened(event(), policy=policy).skew is not None for _ in range(2000))
    assert 380 < sampled < 620


def test_the_previous_key_is_accepted_and_reported():
    passed = screened(event(version_id="hmac-v1", key=SigningKey(b"previous")))
    assert passed.key.version_id == "hmac-v1"
    assert passed.key.expiring, "an hour left, and the producer never polled"
    registry = Registry()
    registry.keys[SOURCE, "hmac-v1"] = HeldKey(
        SigningKey(b"previous"), NOW + 3600, legacy=True, last_poll_at=NOW - 60
    )
    assert not screened(event(version_id="hmac-v1", key=SigningKey(b"previous")), registry).key.expiring


def test_an_invalid_traceparent_is_left_out():
    assert screened(event(traceparent="nonsense", tracestate="x")).command.traceparent is None


def test_a_refusal_can_be_told_whatever_stood_in_the_message():
    body = json.dumps(changed((*META, "id"), "HERE")).replace("HERE", "\\ud800")
    refused = screened(body)
    assert refused.facts.command_id == "?"


def test_facts_from_hostile_hands_are_cut_short():
    refused = screened(changed((*COMMAND, "target"), "x" * 10_000))
    assert len(refused.facts.target) == 256


@settings(max_examples=300)
@given(st.text())
def test_no_text_escapes(text):
    assert not isinstance(screened(text), Passed)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["source", "detail", "metadata", "command", "id", "hmac", "payload", "x"]), inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300)
@given(json_like)
def test_no_json_escapes(value):
    assert not isinstance(screened(json.dumps(value)), Passed)


@settings(max_examples=500)
@given(st.data())
def test_no_mutation_of_a_genuine_command_is_accepted_as_another(data):
    """Change bytes of a signed event: it is refused, or it still means exactly what was signed."""
    genuine = event({"amount": 100, "to": "alice"})
    body = json.dumps(genuine)
    position = data.draw(st.integers(0, len(body) - 1))
    kind = data.draw(st.sampled_from(["replace", "delete", "insert", "swap"]))
    character = data.draw(st.sampled_from(list('{}[]",:0123456789abcdefx \\\n.-+eE')))
    mutated = {
        "replace": body[:position] + character + body[position + 1 :],
        "delete": body[:position] + body[position + 1 :],
        "insert": body[:position] + character + body[position:],
        "swap": body[:position]
        + body[position + 1 : position + 2]
        + body[position : position + 1]
        + body[position + 2 :],
    }[kind]
    found = screened(mutated)
    if isinstance(found, Passed):
        command = found.command
        signed = genuine["detail"]
        assert (command.id, command.timestamp) == (signed["metadata"]["id"], signed["metadata"]["timestamp"])
        assert (command.target, command.name) == ("discord-bot", "notify-user")
        assert msgspec.json.decode(command.payload) == {"amount": 100, "to": "alice"}
        assert command.source == SOURCE
