"""Fairness bans only under contention; dedupe never loses and never repeats unmarked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.domain.dedupe import (
    AlreadyDone,
    ClaimRecord,
    DedupePolicy,
    Fresh,
    HandedOn,
    Repeat,
    SeenIds,
    TakeOver,
    Wait,
    resolve_claim,
)
from snavio.domain.fairness import FairnessWindows, GlobalBanPolicy, Shares, dominates, goes_global
from snavio.domain.freshness import Phase, Ttl, TtlPolicy
from snavio.domain.models import FairnessPolicy, Sensitivity
from snavio.wire.commands import EscalationReason

PAIR = ("discord-bot", "notify-user")
POLICY = FairnessPolicy()


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (Shares(0.85, 0.15, 1, 100), True),
        (Shares(0.80, 0.20, 1, 100), False),
        (Shares(0.81, 0.19, 1, 19), False),
        (Shares(1.0, 0.0, 0, 1000), False),
        (Shares(0.95, 0.05, 2, 100), False),
        (Shares(0.95, 0.05, 3, 100), True),
    ],
)
def test_dominance_needs_a_large_share_and_somebody_to_hurt(shares, expected):
    assert dominates(shares, POLICY) is expected
    assert not dominates(shares, FairnessPolicy(enabled=False))


@given(st.lists(st.sampled_from("aaaaaaaaabcd"), max_size=300))
def test_whoever_is_banned_dominated_at_that_moment_and_others_were_there(senders):
    windows = FairnessWindows("w")
    counts: dict[str, int] = {}
    for number, sender in enumerate(senders):
        counts[sender] = counts.get(sender, 0) + 1
        ban = windows.record(PAIR, sender, POLICY, number * 0.01)
        total = sum(counts.values())
        if ban is not None:
            assert counts[sender] / total > 0.8
            assert total - counts[sender] > 0
            assert total >= POLICY.min_dispatches
            assert windows.ban(PAIR, sender, number * 0.01) == ban


@given(st.integers(1, 500))
def test_a_lone_source_is_never_banned(count):
    windows = FairnessWindows("w")
    assert all(windows.record(PAIR, "a", POLICY, n * 0.01) is None for n in range(count))


def test_a_ban_opens_once_ends_by_itself_and_holds_for_its_pair_alone():
    windows = FairnessWindows("w")
    opened = [
        b for n in range(100) if (b := windows.record(PAIR, "b" if n % 7 == 6 else "a", POLICY, n * 0.01))
    ]
    assert len(opened) == 1
    ban = opened[0]
    assert windows.ban(PAIR, "a", ban.until - 0.001) is not None
    assert windows.ban(PAIR, "a", ban.until) is None
    assert windows.ban(("other", "pair"), "a", ban.opened_at) is None
    assert windows.ban(PAIR, "b", ban.opened_at) is None


def test_counters_start_anew_with_each_window():
    windows = FairnessWindows("w")
    for _ in range(50):
        windows.record(PAIR, "a", POLICY, 0.0)
    assert windows.shares(PAIR, "a", 31.0).volume == 0
    windows.record(PAIR, "b", POLICY, 31.0)
    assert windows.shares(PAIR, "a", 31.0) == Shares(0.0, 1.0, 1, 1)


def test_what_is_over_is_forgotten():
    windows = FairnessWindows("w", most_pairs=10)
    for n in range(1000):
        windows.record(("t", str(n)), "a", POLICY, n * 10.0)
    assert len(windows._windows) <= 11


@pytest.mark.parametrize(
    ("opened", "expected"), [([], False), ([0, 1], False), ([0, 1, 2], True), ([-700, 1, 2], False)]
)
def test_repeated_bans_within_the_period_go_global(opened, expected):
    assert (
        goes_global([float(at) for at in opened], GlobalBanPolicy(bans=3, within_seconds=600), 3.0)
        is expected
    )


DEDUPE = DedupePolicy()
COMMITTED = ClaimRecord("m1", "c", True, 30.0, 300.0)
MARKED = ClaimRecord("m1", "c", True, 30.0, 300.0, possible_duplicate=True)
CLAIMED = ClaimRecord("m1", "c", False, 30.0, 330.0)


@pytest.mark.parametrize(
    ("record", "owner", "now", "expected"),
    [
        (None, "m1", 1.0, Fresh(possible_duplicate=False)),
        (None, "m1", 300.0, Fresh(possible_duplicate=True)),
        (COMMITTED, "m2", 1.0, Repeat()),
        (COMMITTED, "m1", 1.0, AlreadyDone(possible_duplicate=False)),
        (MARKED, "m1", 1.0, AlreadyDone(possible_duplicate=True)),
        (COMMITTED, "m2", 300.0, Fresh(possible_duplicate=True)),
        (CLAIMED, "m1", 1.0, TakeOver("c")),
        (CLAIMED, "m2", 1.0, Wait(29.0)),
        (CLAIMED, "m2", 30.0, TakeOver("c")),
        (CLAIMED, "m2", 330.0, Fresh(possible_duplicate=True)),
    ],
)
def test_what_a_message_may_do_with_its_id(record, owner, now, expected):
    assert resolve_claim(record, owner=owner, received_at=0.0, now=now, policy=DEDUPE) == expected


def test_seen_ids_are_bounded_and_end():
    seen, handed = SeenIds(remember_seconds=10, most=3), HandedOn("m", EscalationReason.DEDUPE_REQUIRED)
    for n in range(5):
        seen.add(str(n), handed, 0.0)
    assert len(seen) == 3
    assert seen.find("0", 1.0) is None
    assert seen.find("4", 9.9) == handed
    assert seen.find("4", 10.0) is None


@pytest.mark.parametrize(
    ("age", "phase"),
    [
        (-5.0, Phase.FRESH),
        (0.0, Phase.FRESH),
        (1.9, Phase.FRESH),
        (2.0, Phase.STALE),
        (3.9, Phase.STALE),
        (4.0, Phase.EXPIRED),
    ],
)
def test_a_critical_grant_ages_from_fresh_to_expired(age, phase):
    assert TtlPolicy().of(Sensitivity.CRITICAL).phase(age) is phase


@given(st.floats(0, 0.5), st.floats(0.1, 1000), st.floats(1, 10))
def test_jitter_never_makes_anything_last_longer(fraction, fresh, factor):
    ttl = Ttl(fresh, fresh * factor)
    jittered = ttl.jittered(fraction)
    assert jittered.fresh_seconds <= ttl.fresh_seconds
    assert jittered.stale_seconds <= ttl.stale_seconds


def test_the_documents_figures_are_the_defaults():
    policy = TtlPolicy()
    figures = {s: (policy.of(s).fresh_seconds, policy.of(s).stale_seconds) for s in Sensitivity}
    assert figures == {
        Sensitivity.CRITICAL: (2, 4),
        Sensitivity.MODERATE: (10, 20),
        Sensitivity.LOW: (30, 90),
    }
    assert (policy.routing, policy.keys) == (Ttl(300, 600), Ttl(60, 180))
