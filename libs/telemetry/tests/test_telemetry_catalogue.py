"""The catalogue against the documents' list, and the published schemas against real messages."""

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.telemetry.alerts import alert_of, body
from snavio.telemetry.asyncapi import asyncapi
from snavio.telemetry.bursts import Burst, BurstKey
from snavio.telemetry.channels import CRITICAL
from snavio.telemetry.schemas import documents
from snavio.wire.commands import Admitted, delivered, encode
from snavio.wire.events import FailedReason, InvalidReason, decode_event, event_types

COMMAND = {"command_id", "source", "target", "command", "timestamp"}
REPLAY = {"replay", "replay_reason", "replay_id"}
CATALOGUE = {
    "snavio.command.delivered": COMMAND | REPLAY | {"path", "dispatch_latency_ms"},
    "snavio.command.invalid": COMMAND | {"reason", "detail"},
    "snavio.command.failed": COMMAND | REPLAY | {"reason", "retry_after_ms", "throttle_until"},
    "snavio.command.duplicate": COMMAND | {"dedupe_mode"},
    "snavio.command.executed_after_acl_revoked": {
        "source",
        "target",
        "command",
        "stale_duration_seconds",
        "acl_revocation_timestamp",
    },
    "snavio.fairness.warm-path-ban": {
        "source",
        "target",
        "command",
        "source_share",
        "competing_share",
        "retry_after_ms",
        "throttle_until",
    },
    "snavio.fairness.abuse_detected": {
        "source",
        "affected_targets",
        "total_violations",
        "ban_applied_until",
    },
    "snavio.secret.legacy_key_used": {"version_id", "source", "time_of_last_config_poll"},
    "snavio.secret.key_expiry_imminent": {"version_id", "source", "time_of_last_config_poll"},
    "snavio.telemetry.skew_near_limit": {"command_id", "source", "sent_at", "received_at", "skew_seconds"},
    "snavio.telemetry.skew_sample": {"source", "skew_seconds", "sent_at", "received_at"},
    "snavio.telemetry.dropped": {
        "tenant",
        "dropped_events",
        "reason",
        "queue_age_seconds",
        "last_received_at",
    },
}
"""Every event of the source documents with the fields they list."""
BEYOND = {
    "snavio.command.escalated",
    "snavio.command.over_limit",
    "snavio.route.health_changed",
    "snavio.snapshot.failed",
    "snavio.snapshot.too_large",
    "snavio.telemetry.delivery_failed",
    "snavio.telemetry.queue_unhealthy",
}
"""Events the documents name elsewhere, or that operators need."""


def test_the_catalogue_has_the_documents_events_and_no_unexplained_ones():
    assert set(event_types()) == set(CATALOGUE) | BEYOND


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_event_has_every_field_the_documents_list(name):
    fields = set(event_types()[name].__struct_fields__)
    assert CATALOGUE[name] <= fields
    assert {"event_id", "tenant", "emitted_at", "schema_version"} <= fields


def test_the_three_critical_events_are_the_documents_three():
    assert {
        "snavio.command.invalid",
        "snavio.telemetry.dropped",
        "snavio.secret.key_expiry_imminent",
    } == CRITICAL


def test_reasons_are_those_of_the_contract():
    assert {reason.value for reason in FailedReason} == {
        "rate-limit-exceeded",
        "acl-deny",
        "route-missing",
        "delivery-failure",
        "fairness-violation",
    }
    assert len(InvalidReason) == 14


def values(annotation):
    """Anything a field of this type may hold in a message: an optional one may be absent, a number is finite."""
    if annotation is msgspec.UnsetType:
        return st.just(msgspec.UNSET)
    if annotation is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if parts := getattr(annotation, "__args__", None):
        return (
            st.lists(values(*parts))
            if annotation.__class__ is list[str].__class__
            else st.one_of(*map(values, parts))
        )
    return st.from_type(annotation)


def any_event(kind):
    return st.builds(kind, **{field.name: values(field.type) for field in msgspec.structs.fields(kind)})


SCHEMAS = {name: jsonschema_rs.validator_for(document) for name, document in documents().items()}


@pytest.mark.parametrize("name", event_types())
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_event_as_sent_fits_its_published_schema_and_reads_back(name, data):
    event = data.draw(any_event(event_types()[name]))
    sent = msgspec.json.encode(event)
    SCHEMAS["telemetry-event.json"].validate(msgspec.json.decode(sent))
    assert msgspec.json.encode(decode_event(sent)) == sent


def test_an_event_of_no_known_type_does_not_fit():
    assert not SCHEMAS["telemetry-event.json"].is_valid({"event": "snavio.unknown", "event_id": "x"})


def sent_command(**changes):
    command = {"target": "discord-bot", "name": "notify-user", "payload": {"any": ["json"]}} | changes
    metadata = {
        "id": "0190b0f4-3a7c-7e41-9c9e-3f1d4a2b5c6d",
        "timestamp": "2026-11-18T06:30:00.123Z",
        "type": "snavio.command-sent",
        "version_id": "hmac-v1",
        "hmac": "0" * 64,
    }
    return {"metadata": metadata, "command": command}


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"payload": None}, True),
        ({"extra": 1}, True),
        ({"source": "acme/billing"}, False),
        ({"target": "Not A Name"}, False),
        ({"name": ""}, False),
    ],
)
def test_the_schema_of_a_sent_command_accepts_what_the_bus_accepts(changes, fits):
    assert SCHEMAS["command-sent.json"].is_valid(sent_command(**changes)) is fits


def test_what_a_target_receives_fits_its_published_schema():
    command = Admitted(
        "acme/billing",
        "0190b0f4-3a7c-7e41-9c9e-3f1d4a2b5c6d",
        "2026-11-18T06:30:00.123Z",
        "discord-bot",
        "notify-user",
        1.0,
        msgspec.Raw(b'{"a":1}'),
    )
    message = encode(delivered(command, path="fast", dispatched_at="2026-11-18T06:30:00.200Z"))
    SCHEMAS["command-delivered.json"].validate(msgspec.json.decode(message))


def test_an_alert_fits_its_published_schema():
    key = BurstKey("acme", "snavio.command.invalid", "discord-bot")
    burst = Burst(key=key, count=3, first_at=1.0, last_at=2.0, due_at=3.0, sample='{"event":"x"}')
    SCHEMAS["alert.json"].validate(msgspec.json.decode(body(alert_of(burst, 3, 4.0))))


def test_every_reference_in_the_asyncapi_document_leads_somewhere():
    document = asyncapi()

    def references(part):
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            for inner in part.values():
                yield from references(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from references(inner)

    found = set(references(document))
    assert len(found) > len(event_types())
    for reference in found:
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    assert set(document["channels"]) == {"bus", "target", "telemetry"}
