"""Signatures, times, events and internal messages as they cross the wire."""

import hashlib
import hmac
import json
import re
import uuid
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.wire import events as catalogue
from snavio.wire.commands import (
    Admitted,
    Escalated,
    EscalationReason,
    decode_admitted,
    decode_escalated,
    delivered,
    encode,
)
from snavio.wire.events import (
    CommandDelivered,
    CommandName,
    decode_event,
    derived_id,
    encode_event,
    event_type,
)
from snavio.wire.names import Names, is_command, is_name, is_source
from snavio.wire.outbox import outbox_row
from snavio.wire.signing import UUID_PATTERN, SigningKey, framed, is_framed
from snavio.wire.times import TIME_PATTERN, format_time, parse_time

PARTS = ("hmac-v1", str(uuid.UUID(int=7)), "2026-11-18T06:30:00.123Z", "discord-bot", "notify-user")


@given(st.binary(min_size=1, max_size=200), st.binary(max_size=300))
def test_a_signature_is_plain_hmac_sha256_over_the_framed_parts(secret, payload):
    message = b"\n".join([b"SNAVIO1", *(part.encode() for part in PARTS), payload])
    assert (
        SigningKey(secret).sign(framed(*PARTS), payload)
        == hmac.new(secret, message, hashlib.sha256).hexdigest()
    )


@pytest.mark.parametrize("part", range(5))
def test_no_part_of_a_command_can_be_exchanged_under_its_signature(part):
    key = SigningKey(b"secret")
    signature = key.sign(framed(*PARTS), b"{}")
    changed = list(PARTS)
    changed[part] = changed[part] + "x"
    assert key.verify(signature, framed(*PARTS), b"{}")
    assert not key.verify(signature, framed(*changed), b"{}")
    assert not key.verify(signature, framed(*PARTS), b'{"a":1}')


SPOILT = st.tuples(st.integers(0, 99), st.sampled_from(["", "\n", "-", "A", "g", "é", "0", "\n\n", "Z"]))


@given(st.integers(1, 4), SPOILT)
def test_a_frame_is_well_formed_exactly_when_each_of_its_parts_is(part, spoilt):
    parts, (place, instead) = list(PARTS), spoilt
    place %= len(parts[part]) + 1
    parts[part] = parts[part][:place] + instead + parts[part][place + 1 :]
    forms = (
        re.compile(UUID_PATTERN).fullmatch,
        re.compile(TIME_PATTERN).fullmatch,
        is_name,
        is_command,
    )
    expected = all(form(text) for form, text in zip(forms, parts[1:], strict=True))
    assert (is_framed(framed(*parts)) is not None) == expected


def test_a_payload_serialised_anew_by_the_bus_still_verifies():
    key = SigningKey(b"secret")
    signature = key.sign(framed(*PARTS), b'{"a":1000,"b":"\xc3\xbc"}')
    assert key.verify(signature, framed(*PARTS), b'{ "b": "\\u00fc", "a": 1e3 }')


@pytest.mark.parametrize("signature", ["", "x", "é", "\ud800", "0" * 64])
def test_a_worthless_signature_is_refused_without_a_fuss(signature):
    assert not SigningKey(b"secret").verify(signature, framed(*PARTS), b"{}")


def test_a_signing_key_does_not_show_its_secret():
    assert "secret" not in repr(SigningKey(b"secret"))


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))
def test_a_time_written_is_the_time_read(moment):
    seconds = moment.replace(tzinfo=UTC).timestamp()
    assert parse_time(format_time(seconds)) == pytest.approx(seconds, abs=0.001)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-18",
        "2026-11-18T06:30:00",
        "20261118T063000Z",
        "2026-13-18T06:30:00Z",
        "2026-11-18T24:61:00Z",
        "2026-11-18 06:30:00Z",
        "2026-W47-3T06:30:00Z",
        "２026-11-18T06:30:00Z",
        "2026-11-18T06:30:00Z\n",
    ],
)
def test_only_rfc_3339_with_an_offset_is_a_time(text):
    assert parse_time(text) is None


def test_offsets_and_lower_case_are_rfc_3339_too():
    assert parse_time("2026-11-18t07:30:00.5+01:00") == parse_time("2026-11-18T06:30:00.500z")


@given(st.text())
def test_parsing_a_time_never_raises(text):
    parse_time(text)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (is_name, ["a", "0", "discord-bot", "a" * 63], ["", "-a", "A", "a" * 64, "a/b", "a\n", "ä"]),
        (is_command, ["notify-user", "v1.2_x", "a" * 127], ["", ".a", "a" * 128, "a b", "a\n"]),
        (
            is_source,
            ["acme/billing"],
            ["acme", "acme/", "/x", "acme/billing/x", "_platform/replayer", "acme/billing\n"],
        ),
    ],
)
def test_names_are_held_to_their_patterns(check, good, bad):
    assert all(check(name) for name in good)
    assert not any(check(name) for name in bad)


def test_every_name_of_an_installation_carries_its_prefix():
    names = Names(prefix="other", region="eu-central-1", account="123456789012")
    plain = [
        value
        for name in dir(Names)
        if isinstance(value := getattr(names, name, None), str)
        and not name.startswith("_")
        and name not in {"prefix", "region", "account", "partition"}
    ]
    assert len(plain) > 20
    assert all("other-" in value for value in plain)


def admitted(payload: bytes = b"{}") -> Admitted:
    return Admitted(
        "acme/billing", PARTS[1], PARTS[2], "discord-bot", "notify-user", 1.5, msgspec.Raw(payload)
    )


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53)))
def test_a_payload_reaches_the_target_as_it_was_sent(payload):
    command = decode_admitted(
        encode(admitted(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")))
    )
    message = json.loads(encode(delivered(command, path="fast", dispatched_at="now")))
    assert message["command"]["payload"] == json.loads(
        json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    )


def test_characters_json_allows_and_sqs_refuses_are_escaped():
    text = encode(admitted('{"a":"\ufffe\uffff"}'.encode()))
    assert "\ufffe" not in text
    assert "\uffff" not in text
    assert json.loads(bytes(decode_admitted(text).payload)) == {"a": "\ufffe\uffff"}


def test_an_escalation_carries_the_command_and_its_reason():
    escalated = Escalated(admitted(), EscalationReason.TOKEN_REQUIRED, 2.5)
    assert decode_escalated(encode(escalated)).reason is EscalationReason.TOKEN_REQUIRED


def event() -> CommandDelivered:
    return CommandDelivered(
        event_id=derived_id("m", "delivered"),
        tenant="acme",
        emitted_at="now",
        command_id="c",
        source="acme/billing",
        target="t",
        command=CommandName("n"),
        timestamp="then",
        path="fast",
        dispatch_latency_ms=1.25,
    )


def test_an_event_is_flat_json_without_what_does_not_apply():
    assert json.loads(encode_event(event())) == {
        "event": "snavio.command.delivered",
        "event_id": derived_id("m", "delivered"),
        "schema_version": "1.0",
        "tenant": "acme",
        "emitted_at": "now",
        "command_id": "c",
        "source": "acme/billing",
        "target": "t",
        "command": {"name": "n"},
        "timestamp": "then",
        "path": "fast",
        "dispatch_latency_ms": 1.25,
    }
    assert decode_event(encode_event(event())) == event()


def test_every_event_has_a_type_of_its_own():
    kinds = [kind.__struct_config__.tag for kind in catalogue.Event.__args__]
    assert len(set(kinds)) == len(kinds)
    assert all(kind.startswith("snavio.") for kind in kinds)


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
def test_a_derived_id_is_a_uuid_that_depends_on_every_part(parts):
    found = derived_id(*parts)
    assert uuid.UUID(found).version == 5
    assert str(uuid.UUID(found)) == found
    assert derived_id(*parts) == found
    assert derived_id(*parts, "x") != found


def test_an_outbox_row_is_keyed_by_its_event():
    row = outbox_row(event(), 1000.5, retention_seconds=60)
    assert (row.tenant, row.event_type, row.source) == ("acme", event_type(event()), "acme/billing")
    assert row.pk == f"acme#{row.sk[0]}"
    assert row.sk == event().event_id
    assert (row.written_at, row.expires_at) == (1_000_500, 1060)
