"""The parts without I/O: backoff, trace context, dead letters, the hand."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws.ports import MAX_MESSAGE_BYTES
from snavio.aws.values import Outgoing, Received
from snavio.runtime import metrics
from snavio.runtime.backoff import MAX_VISIBILITY_SECONDS, backoff_seconds, jittered, visibility_timeout
from snavio.runtime.dead_letters import ORIGIN, REASON, dead_letter, sendable_batches
from snavio.runtime.in_hand import InHand
from snavio.runtime.tracecontext import TraceContext, parse_traceparent

rolls = st.floats(0, 1, exclude_max=True)
attempts = st.integers(min_value=-5, max_value=10**9)


@given(attempts, rolls)
def test_a_backoff_is_never_zero_nor_over_its_cap(attempt, roll):
    assert 1 <= backoff_seconds(attempt, roll) <= 300


@given(st.integers(1, 10**6), rolls)
def test_the_next_backoff_is_never_shorter_by_the_same_roll(attempt, roll):
    assert backoff_seconds(attempt + 1, roll) >= backoff_seconds(attempt, roll)


@given(st.integers(1, 7))
def test_half_of_a_backoff_is_jitter(attempt):
    full = 2.0**attempt
    assert backoff_seconds(attempt, 0) == full / 2
    assert backoff_seconds(attempt, math.nextafter(1, 0)) == pytest.approx(full)


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_a_visibility_timeout_is_what_sqs_accepts_and_not_sooner_than_asked(seconds):
    timeout = visibility_timeout(seconds)
    assert 0 <= timeout <= MAX_VISIBILITY_SECONDS
    assert timeout >= min(seconds, MAX_VISIBILITY_SECONDS)
    assert timeout <= max(seconds, 0) + 1


@given(st.floats(0.001, 1e6), rolls, st.floats(0, 1))
def test_jitter_keeps_within_its_fraction(seconds, roll, jitter):
    assert jittered(seconds, roll, jitter) == pytest.approx(seconds, rel=jitter + 1e-9)


hex_ids = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(hex_ids, hex_ids, st.booleans())
def test_a_traceparent_survives_the_journey(trace_id, span_id, sampled):
    context = TraceContext(trace_id, span_id[:16], sampled)
    expected = None if not (trace_id.strip("0") and span_id[:16].strip("0")) else context
    assert parse_traceparent(context.traceparent) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        "ff-" + "a" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "0" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "0" * 16 + "-01",
        "00-" + "A" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "b" * 16 + "-01-more",
        "00-" + "a" * 31 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "b" * 16 + "-01\n",
    ],
)
def test_a_traceparent_the_standard_ignores_is_ignored(text):
    assert parse_traceparent(text) is None


def test_a_traceparent_of_a_later_version_is_read():
    text = "01-" + "a" * 32 + "-" + "b" * 16 + "-03-more"
    assert parse_traceparent(text, "k=v") == TraceContext("a" * 32, "b" * 16, sampled=True, state="k=v")


def received(number: int = 1, *, count: int = 1, attributes: dict[str, str] | None = None) -> Received:
    return Received(f"m{number}", f"r{number}", "body", count, 0.0, "acme", attributes or {})


@given(st.text(), st.dictionaries(st.text(min_size=1), st.text(min_size=1), max_size=10))
def test_a_dead_letter_keeps_within_what_sqs_accepts(reason, attributes):
    letter = dead_letter(received(attributes=attributes), reason)
    assert len(letter.attributes) <= 10
    assert letter.attributes[ORIGIN] == "m1"
    assert 1 <= len(letter.attributes[REASON]) <= 256
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", letter.attributes[REASON])
    if len(attributes) <= 8:
        assert attributes.items() - {REASON, ORIGIN} <= letter.attributes.items() | {
            (REASON, attributes.get(REASON)),
            (ORIGIN, attributes.get(ORIGIN)),
        }


@given(st.lists(st.integers(0, MAX_MESSAGE_BYTES), max_size=30))
def test_sendable_batches_lose_nothing_and_keep_the_limits(sizes):
    messages = [Outgoing("x" * size) for size in sizes]
    batches = list(sendable_batches(messages))
    assert [message for batch in batches for message in batch] == messages
    for batch in batches:
        assert 1 <= len(batch) <= 10
        assert sum(len(message.body) for message in batch) <= MAX_MESSAGE_BYTES


@given(st.lists(st.integers(1, 5), max_size=40), st.integers(1, 4))
def test_suspects_come_alone_and_nothing_is_left_behind(counts, alone_from):
    hand = InHand(1000)
    assert hand.reserve()
    hand.fill([received(n, count=count) for n, count in enumerate(counts)], now=0, visible_at=30)
    taken = []
    while batch := hand.next_batch(alone_from=alone_from):
        assert len(batch) <= 10
        assert len(batch) == 1 or all(held.message.receive_count < alone_from for held in batch)
        taken += [held.message.id for held in batch]
    assert taken == [f"m{n}" for n in range(len(counts))]


def test_the_documents_metrics_are_all_there_and_in_their_own_words():
    documented = {
        *(f"Snavio.Cache.Usage.{use}" for use in ("Fresh", "Stale", "Expired")),
        *(
            f"Snavio.Cache.{cache}.{what}"
            for cache in ("ACL", "Routing", "HMAC")
            for what in ("Usage.Stale", "RefreshDuration", "StaleWindowSeconds")
        ),
        "Snavio.Cache.SnapshotLoadFailure",
        *(f"Snavio.Snapshot.{what}" for what in ("Generated", "SizeBytes", "WriteDuration")),
        *(
            f"Snavio.Dedup.{what}"
            for what in ("StrictModeUsage", "DuplicatesPrevented", "Escalations", "SlowPathLatency")
        ),
    }
    assert documented <= metrics.ALL.keys()
