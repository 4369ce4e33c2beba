"""The arithmetic of limits: exact in any window, whoever holds the units."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.domain.bucket import UNIT, Bucket, microseconds
from snavio.domain.lease import Demand, Lease, LeasePolicy, lease_size
from snavio.domain.models import RateLimit

START = microseconds(1_800_000_000.0)

limits = st.builds(
    RateLimit,
    limit=st.integers(1, 200),
    interval_seconds=st.sampled_from([1, 7, 60]),
    burst=st.none() | st.integers(1, 50),
)


class Counter:
    """The authoritative total, as the store keeps it."""

    def __init__(self, bucket):
        self.bucket = bucket
        self.issued = None

    def reserve(self, wanted, now_us):
        window = self.bucket.window(now_us)
        units = min(wanted, window.room_after(self.issued))
        start = window.floor if self.issued is None or self.issued < window.floor else self.issued
        if units:
            self.issued = start + units * UNIT
        return start, units


@settings(max_examples=300)
@given(
    limits,
    st.lists(
        st.tuples(st.integers(0, 900_000), st.integers(0, 3), st.integers(1, 12)), min_size=1, max_size=60
    ),
)
def test_no_window_ever_holds_more_than_burst_plus_rate(limit, steps):
    """Holders reserve leases and spend them whenever they like: the bound holds for every window."""
    bucket = Bucket.of(limit)
    counter = Counter(bucket)
    leases: list[Lease] = []
    spent: list[int] = []
    now = START
    for wait, action, amount in steps:
        now += wait
        if action == 0:
            start, units = counter.reserve(amount, now)
            if units:
                leases.append(Lease(bucket, start, units, until_us=now + 60_000_000))
        elif leases:
            lease = leases[amount % len(leases)]
            spent += [now for _ in range(amount) if lease.take(now)]
    for first, last in itertools.combinations(range(len(spent)), 2):
        seconds = (spent[last] - spent[first]) / 1e6
        assert last - first + 1 <= limit.capacity + limit.per_second * seconds + 1e-6


@given(limits, st.integers(0, 5_000_000))
def test_with_skewed_clocks_within_tolerance_the_bound_holds_in_true_time(limit, tolerance_us):
    bucket = Bucket.of(limit, tolerance_seconds=tolerance_us / 1e6)
    exact = Bucket.of(limit)
    for skew in (-bucket.tolerance_us, 0, bucket.tolerance_us):
        window, truth = bucket.window(START + skew), exact.window(START)
        assert window.floor >= truth.floor
        assert window.cap <= truth.cap
        assert window.room_after(None) >= 1, "a limit must let something through"


@given(limits)
def test_an_idle_limit_offers_its_whole_burst_and_no_more(limit):
    bucket = Bucket.of(limit)
    assert bucket.window(START).room_after(None) == limit.capacity
    assert bucket.window(START).room_after(0) == limit.capacity


@given(limits, st.integers(1, 20))
def test_after_the_hinted_wait_there_is_room_again(limit, wanted):
    bucket = Bucket.of(limit)
    counter = Counter(bucket)
    while counter.reserve(wanted, START)[1]:
        pass
    wait = bucket.wait_us(counter.issued, START)
    assert bucket.window(START + wait).room_after(counter.issued) >= 1
    if wait > 1:
        assert bucket.window(START + wait - 2).room_after(counter.issued) == 0


def test_a_lease_kept_too_long_is_not_used():
    bucket = Bucket.of(RateLimit(10, 1))
    start, units = Counter(bucket).reserve(5, START)
    lease = Lease(bucket, start, units, until_us=START + 60_000_000)
    assert lease.take(START)
    assert lease.units_left(START + 2_000_000) == 0
    assert not lease.take(START + 2_000_000)


def test_a_lease_ends_with_its_time():
    bucket = Bucket.of(RateLimit(1, 1, burst=1000))
    start, units = Counter(bucket).reserve(500, START)
    lease = Lease(bucket, start, units, until_us=START + 30_000_000)
    assert lease.take(START + 29_999_999)
    assert not lease.take(START + 30_000_000)


@pytest.mark.parametrize(
    ("limit", "demand", "room", "expected"),
    [
        (RateLimit(1000, 1), 100.0, None, 200),
        (RateLimit(1000, 1), 5000.0, None, 250),
        (RateLimit(1000, 1), 0.0, None, 1),
        (RateLimit(1000, 1), 100.0, 399, 1),
        (RateLimit(1000, 1), 100.0, 400, 200),
        (RateLimit(1, 1), 100.0, None, 0),
        (RateLimit(2, 1), 100.0, None, 1),
        (RateLimit(100, 1, burst=1), 100.0, None, 0),
        (RateLimit(100, 60), 100.0, None, 3),
        (RateLimit(30, 60), 100.0, None, 0),
    ],
)
def test_a_lease_covers_demand_shrinks_near_exhaustion_and_is_not_taken_where_it_cannot_live(
    limit, demand, room, expected
):
    assert lease_size(Bucket.of(limit), LeasePolicy(), demand_per_second=demand, room=room) == expected


def test_demand_follows_what_is_asked_for():
    demand = Demand(0.0)
    for second in range(1, 30):
        for _ in range(50):
            demand.note()
        demand.settle(float(second))
    assert demand.per_second == pytest.approx(50, rel=0.01)
    assert demand.settle(60.0) < 1
