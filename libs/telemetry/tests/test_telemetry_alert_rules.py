"""Who is alerted of what, how bursts are told, and when a delivery is given up: pure."""

import hashlib
import hmac
import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.telemetry.alerts import MAX_SUBJECT, alert_of, body, signature, subject
from snavio.telemetry.bursts import (
    ANY_TARGET,
    Burst,
    BurstKey,
    BurstSettings,
    Close,
    Sighting,
    Tell,
    Wait,
    burst_key,
    joined,
    opened,
    step,
)
from snavio.telemetry.channels import (
    ALERTABLE,
    CRITICAL,
    OPERATIONAL,
    AlertBy,
    AlertSettings,
    Dashboard,
    Email,
    NoAlert,
    Unrouted,
    Webhook,
    default_settings,
    problems,
    route,
)
from snavio.telemetry.deliveries import (
    Delivery,
    DeliverySettings,
    DeliveryState,
    GiveUp,
    Sent,
    TryAgain,
    attempted,
    next_due,
)
from snavio.wire.names import PLATFORM_TENANT

INVALID = "snavio.command.invalid"
FAILED = "snavio.command.failed"


@pytest.mark.parametrize("event_type", sorted(CRITICAL))
@pytest.mark.parametrize("settings", [AlertSettings(), AlertSettings(dict.fromkeys(CRITICAL, ()))])
def test_a_critical_event_switched_off_goes_to_operators(event_type, settings):
    assert route("acme", event_type, settings) == Unrouted()


def test_other_events_alert_only_who_asked():
    chosen = AlertSettings({FAILED: (Dashboard(), Dashboard(), Email(("a@b.example",)))})
    assert route("acme", FAILED, AlertSettings()) == NoAlert()
    assert route("acme", FAILED, chosen) == AlertBy((Dashboard(), Email(("a@b.example",))))


@pytest.mark.parametrize("event_type", sorted(OPERATIONAL))
def test_operators_events_are_always_on_their_dashboard(event_type):
    assert route(PLATFORM_TENANT, event_type, AlertSettings()) == AlertBy((Dashboard(),))


def test_a_new_tenant_hears_of_critical_events_by_mail_if_it_gave_an_address():
    assert set(default_settings("ops@acme.example").channels) == CRITICAL
    assert problems(default_settings("ops@acme.example")) == []
    assert all(
        Email(("ops@acme.example",)) in c for c in default_settings("ops@acme.example").channels.values()
    )
    assert all(chosen == (Dashboard(),) for chosen in default_settings(None).channels.values())


@pytest.mark.parametrize(
    ("channel", "acceptable"),
    [
        (Dashboard(), True),
        (Email(("ops@acme.example", "x@y.example")), True),
        (Email(()), False),
        (Email(("no address",)), False),
        (Email(("a@b.example\nBcc: c@d.example",)), False),
        (Webhook("https://hooks.acme.example/snavio?x=1"), True),
        (Webhook("http://hooks.acme.example/"), False),
        (Webhook("file:///etc/passwd"), False),
        (Webhook("https://"), False),
        (Webhook("https://user:secret@acme.example/"), False),
        (Webhook("https://acme.example:99999/"), False),
        (Webhook("https://acme.example/ x"), False),
    ],
)
def test_channels_are_checked_before_they_are_kept(channel, acceptable):
    assert (problems(AlertSettings({INVALID: (channel,)})) == []) is acceptable


def test_events_that_alert_nobody_cannot_be_chosen():
    assert "snavio.command.delivered" not in ALERTABLE
    assert problems(AlertSettings({"snavio.command.delivered": (Dashboard(),)})) != []
    assert problems(AlertSettings({"snavio.telemetry.delivery_failed": (Dashboard(),)})) != []


# Bursts
SETTINGS = BurstSettings(gather_seconds=5, window_seconds=300)


def simulate(arrivals, until):
    """Tell a burst's notifications as the sender would, second by second; returns (time, count) of each."""
    burst, told = None, []
    key = BurstKey("acme", INVALID, "bot")
    for now in range(until):
        for _ in range(arrivals.count(now)):
            if burst is None:
                burst = opened(key, Sighting(1, now, now, "{}"), now, SETTINGS)
            else:
                burst = msgspec.structs.replace(burst, count=burst.count + 1, last_at=now)
        if burst is not None:
            match step(burst, now, SETTINGS):
                case Tell(count=count, then=burst):
                    told.append((now, count))
                case Close():
                    burst = None
                case Wait():
                    pass
    return told


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2000), max_size=60))
def test_every_event_is_told_once_and_never_more_than_once_a_window(arrivals):
    told = simulate(arrivals, 2000 + 600)
    assert sum(count for _, count in told) == len(arrivals)
    times = [now for now, _ in told]
    assert all(later - earlier >= SETTINGS.gather_seconds for earlier, later in itertools.pairwise(times))
    assert len(told) <= 2 * (2600 // 300 + 1) + len(arrivals) // 2 + 1
    if arrivals:
        assert min(arrivals) + SETTINGS.gather_seconds == times[0]


def test_a_flood_is_one_notice_and_then_one_a_window():
    assert simulate([second for second in range(600) for _ in range(3)], 1000) == [
        (5, 18),
        (305, 900),
        (605, 882),
    ]


def test_a_burst_after_silence_is_told_at_once_again():
    assert simulate([0, 1000], 1400) == [(5, 1), (1005, 1)]


@pytest.mark.parametrize(
    ("target", "kept"),
    [("discord-bot", "discord-bot"), ("Not a name", ANY_TARGET), (None, ANY_TARGET), (7, ANY_TARGET)],
)
def test_targets_that_are_no_names_share_a_burst(target, kept):
    assert burst_key("acme", INVALID, target).target == kept


def test_sightings_join_into_their_span():
    assert joined(Sighting(2, 5, 6, "a"), Sighting(3, 4, 5, "b")) == Sighting(5, 4, 6, "a")


# The alert
def burst(**changes):
    key = BurstKey("acme", INVALID, "bot")
    return msgspec.structs.replace(
        Burst(key=key, count=7, first_at=10.0, last_at=20.0, due_at=0.0, sample='{"a":1}'), **changes
    )


def test_an_alert_says_how_many_since_when_and_shows_one():
    alert = alert_of(burst(told=5, notices=1), 2, 30.0)
    said = msgspec.json.decode(body(alert))
    assert (said["count"], said["total"]) == (2, 7)
    assert (said["first_at"], said["last_at"]) == ("1970-01-01T00:00:10.000Z", "1970-01-01T00:00:20.000Z")
    assert said["sample"] == {"a": 1}
    assert subject(alert) == "[Snavio] acme: snavio.command.invalid about bot, 2 more"


def test_a_subject_fits_in_a_line_whatever_the_names():
    long = BurstKey("t" * 63, INVALID, "x" * 63)
    assert len(subject(alert_of(burst(key=long), 1, 1.0))) <= MAX_SUBJECT


def test_an_alert_raised_again_after_a_crash_has_the_same_id():
    assert alert_of(burst(), 7, 30.0).alert_id == alert_of(burst(), 7, 99.0).alert_id
    assert alert_of(burst(), 7, 30.0).alert_id != alert_of(burst(notices=1), 7, 30.0).alert_id


def test_a_receiver_can_check_the_signature_from_the_description():
    expected = hmac.new(b"secret", b"1795000000." + b'{"x":1}', hashlib.sha256).hexdigest()
    assert signature(b"secret", "1795000000", b'{"x":1}') == f"v1={expected}"


# Deliveries
def test_a_delivery_is_tried_with_growing_pauses_and_then_given_up():
    settings = DeliverySettings(attempts=4, base_seconds=10, cap_seconds=15)
    delivery, pauses = Delivery(channel=Dashboard()), []
    for _ in range(4):
        delivery = attempted(delivery, TryAgain("500"), now=100.0, roll=0.5, settings=settings)
        pauses.append(delivery.due_at - 100.0)
    assert pauses == [7.5, 11.25, 11.25, -100.0]
    assert delivery.state is DeliveryState.FAILED
    assert [attempt.outcome for attempt in delivery.attempts] == ["try-again"] * 4


@pytest.mark.parametrize(
    ("result", "state"), [(Sent("ok"), DeliveryState.SENT), (GiveUp("410"), DeliveryState.FAILED)]
)
def test_a_delivery_that_is_over_is_never_due(result, state):
    after = attempted(Delivery(channel=Dashboard()), result, now=1.0, roll=0.0, settings=DeliverySettings())
    assert after.state is state
    assert next_due([after]) is None
