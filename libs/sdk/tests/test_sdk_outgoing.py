"""What leaves is what the platform accepts, and what it would refuse does not leave."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from snavio.domain.screening import Passed, ScreeningPolicy, screen
from snavio.sdk.errors import ConfigError, InvalidCommandError
from snavio.sdk.outgoing import MAX_ENTRY_BYTES, detail, prepare, quick_canonical
from snavio.sdk.tenant_config import (
    KeyVersion,
    Service,
    TenantConfig,
    choose_signer,
    decode_config,
    only_source,
)
from snavio.sdk.testing.registry import MemoryRegistry
from snavio.wire.canonical import canonical, canonicalise
from snavio.wire.times import format_time

NOW = 1_800_000_000.0
SOURCE = "acme/billing"
REGISTRY = MemoryRegistry()
REGISTRY.add_key(SOURCE, previous_ends_at=0)
SIGNER = choose_signer(
    TenantConfig(tenant="acme", services=REGISTRY.services_of("acme"), bus="b"), SOURCE, NOW
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def on_the_bus(command, *, reserialised=False):
    text = detail(command, SIGNER, format_time(NOW))
    if reserialised:
        # What an emulator or another bus may do: other spacing, other escapes, other number forms.
        text = json.dumps(json.loads(text))
    return f'{{"source": "{SOURCE}", "detail": {text}}}'


@given(values, st.booleans())
def test_any_json_passes_the_platforms_screening(payload, reserialised):
    command = prepare("discord-bot", "notify-user", payload, correlation_id='"\\\n', traceparent=None)
    result = screen(on_the_bus(command, reserialised=reserialised), NOW, REGISTRY, ScreeningPolicy())
    assert isinstance(result, Passed)
    assert canonicalise(bytes(result.command.payload)) == canonical(payload)
    assert result.command.correlation_id == '"\\\n'


numbers = st.floats() | st.integers() | st.sampled_from([1e16, 1e-5, 1e-6, 1e-7, 1.5e-6, -0.0, 1e20, 0.1])


@given(
    st.recursive(
        values | numbers, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8
    )
)
@example({"\ufb33": 1, "\U0001f600": 2})
@example({"a\x7f\x1f\u2028": '\b\t\n\f\r"\\/'})
def test_the_quick_way_to_the_canonical_form_never_differs_from_the_slow_one(value):
    quick = quick_canonical(value)
    if quick is not None:
        assert quick == canonical(value)


def test_the_quick_way_serves_ordinary_payloads():
    assert quick_canonical({"user": 42, "text": "Größe", "amount": 19.99, "lines": [{"ok": True}]})


def test_characters_sqs_refuses_travel_escaped():
    command = prepare("discord-bot", "notify-user", "\ufffe\uffff")
    text = on_the_bus(command)
    assert "\ufffe" not in text
    assert "\uffff" not in text
    assert isinstance(screen(text, NOW, REGISTRY, ScreeningPolicy()), Passed)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("target", "name", "payload", "options", "reason", "words"),
    [
        ("Discord", "notify", {}, {}, "bad-field", "not the name of a target"),
        ("a" * 64, "notify", {}, {}, "bad-field", "at most 63"),
        ("bot\n", "notify", {}, {}, "bad-field", "not the name of a target"),
        ("bot", "notify user", {}, {}, "bad-field", "not the name of a command"),
        ("bot", "notify", {}, {"command_id": "42"}, "bad-field", "not a UUID"),
        ("bot", "notify", {}, {"correlation_id": 42}, "wrong-type", "correlation_id is not a string"),
        ("bot", "notify", {}, {"correlation_id": "\ud800"}, "bad-field", "lone surrogate"),
        ("bot", "notify", {"when": object()}, {}, "wrong-type", "not JSON"),
        ("bot", "notify", {None: "one"}, {}, "wrong-type", "not JSON"),
        ("bot", "notify", float("nan"), {}, "bad-field", "not finite"),
        ("bot", "notify", "\ud800", {}, "bad-field", "lone surrogate"),
        ("bot", "notify", {"id": [2**53 + 1]}, {}, "bad-field", "send it as a string"),
        ("bot", "notify", 10**400, {}, "bad-field", "out of range"),
        ("bot", "notify", "x" * MAX_ENTRY_BYTES, {}, "too-large", "1000002 bytes"),
        ("bot", "notify", "é" * (MAX_ENTRY_BYTES // 2), {}, "too-large", "1000002 bytes"),
        ("bot", "notify", nested(5000), {}, "bad-field", "nested too deeply"),
    ],
)
def test_what_the_platform_would_refuse_is_refused_here_with_its_reason(
    target, name, payload, options, reason, words
):
    with pytest.raises(InvalidCommandError, match=words) as caught:
        prepare(target, name, payload, **options)
    assert caught.value.reason == reason


@pytest.mark.parametrize("exact", [2**53, -(2**53), 10**20, 123456789012345680000])
def test_large_integers_that_survive_are_sent(exact):
    assert json.loads(prepare("bot", "notify", [exact]).payload) == [exact]


def test_the_size_counted_is_never_less_than_the_size_sent():
    command = prepare("bot", "notify", {"text": "é"}, correlation_id="é" * 100, schema_version="1.0")
    assert command.size >= len(detail(command, SIGNER, format_time(NOW)).encode()) + len(SOURCE)


class Inner(msgspec.Struct):
    at: datetime


@dataclass
class Order:
    id: uuid.UUID
    inner: Inner


def test_structs_dataclasses_and_times_become_json():
    order = Order(uuid.UUID(int=7), Inner(datetime(2026, 11, 18, tzinfo=UTC)))
    assert json.loads(prepare("bot", "notify", {"order": order}).payload) == {
        "order": {"id": str(uuid.UUID(int=7)), "inner": {"at": "2026-11-18T00:00:00Z"}}
    }


def test_pydantic_models_become_json():
    pydantic = pytest.importorskip("pydantic")

    class Note(pydantic.BaseModel):
        at: datetime

    note = Note(at=datetime(2026, 11, 18, tzinfo=UTC))
    assert json.loads(prepare("bot", "notify", note).payload) == {"at": "2026-11-18T00:00:00Z"}


def key(version, state="current", not_after=None):
    return KeyVersion(version, "c2VjcmV0", state, not_after)


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ([key("hmac-v1")], "hmac-v1"),
        ([key("hmac-v1", "previous", NOW + 9), key("hmac-v2")], "hmac-v2"),
        ([key("hmac-v2"), key("hmac-v1", "previous", format_time(NOW + 9))], "hmac-v2"),
        # The current one has ended and nobody polled: the other still serves.
        ([key("hmac-v2", "current", NOW), key("hmac-v1", "previous", NOW + 9)], "hmac-v1"),
        # A platform that marks states in words of its own.
        ([key("hmac-v9", "active"), key("hmac-v10", "active")], "hmac-v10"),
    ],
)
def test_the_key_of_the_moment(keys, chosen):
    config = TenantConfig(tenant="acme", services=[Service(SOURCE, keys)], bus="b")
    assert choose_signer(config, SOURCE, NOW).version_id == chosen


def test_no_valid_key_is_said_without_showing_any():
    config = TenantConfig(
        tenant="acme", services=[Service(SOURCE, [key("hmac-v1", "current", NOW)])], bus="b"
    )
    with pytest.raises(ConfigError, match="No key of acme/billing is valid"):
        choose_signer(config, SOURCE, NOW)
    assert "c2VjcmV0" not in repr(config)


def test_a_source_must_be_said_when_there_are_two():
    config = TenantConfig(tenant="acme", services=[Service("acme/a", []), Service("acme/b", [])], bus="b")
    with pytest.raises(ConfigError, match="Say which source"):
        only_source(config, None)
    with pytest.raises(ConfigError, match="acme/c is not a registered service"):
        only_source(config, "acme/c")
    assert only_source(config, "acme/b") == "acme/b"


def test_an_unreadable_config_is_said_without_repeating_it():
    with pytest.raises(ConfigError, match="missing required field") as caught:
        decode_config(b'{"tenant": "acme", "secret": "c2VjcmV0"}')
    assert "c2VjcmV0" not in str(caught.value)
