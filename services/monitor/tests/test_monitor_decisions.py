"""What the monitor makes of a queue, and what it finds due. No clocks, no AWS."""

import msgspec
import pytest

from snavio.control.keys import DAY, KeyPolicy
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Ban, BanMode, Grant, Key, Route
from snavio.monitor.queue_health import Reading, Unreachable, first_memory, judge
from snavio.monitor.upkeep import due_for_rotation, expiry_warnings, keys_by_source, what_is_over
from snavio.registry.view import Registry

DRAIN = 100


def watched(*looks):
    """The statuses of looks at (moment, reading)."""
    memory = first_memory(looks[0][0])
    found = []
    for moment, reading in looks:
        verdict, memory = judge(reading, memory, moment, DRAIN)
        found.append(str(verdict.status))
    return found


def seen(waiting, in_flight=0, oldest=None):
    return Reading(waiting=waiting, in_flight=in_flight, oldest_seconds=oldest)


@pytest.mark.parametrize(
    ("looks", "statuses"),
    [
        # Twice the expected time, measured by CloudWatch.
        ([(0, seen(5, 1, oldest=200))], ["healthy"]),
        ([(0, seen(5, 1, oldest=201)), (1, seen(5, 1, oldest=30))], ["unhealthy", "healthy"]),
        # The same without CloudWatch: since it was last seen empty.
        (
            [(0, seen(0)), (90, seen(3)), (150, seen(3, 1)), (201, seen(3, 1)), (202, seen(0))],
            ["healthy", "healthy", "healthy", "unhealthy", "healthy"],
        ),
        # An age CloudWatch remembers of messages that are gone is nobody's.
        ([(0, seen(0, oldest=900))], ["healthy"]),
        # Nobody takes any.
        ([(0, seen(0)), (101, seen(3)), (102, seen(2, 1))], ["healthy", "unpolled", "healthy"]),
        # They are taken, and yet there are more each time.
        (
            [(0, seen(1, 1))] + [(25 * n, seen(n + 2, 1)) for n in range(1, 6)],
            ["healthy", "healthy", "healthy", "healthy", "healthy", "stalled"],
        ),
        # Out of reach, and nothing held against it when it is back.
        (
            [(0, seen(3, 1)), (150, Unreachable("denied")), (300, seen(3)), (390, seen(3))],
            ["healthy", "unreachable", "healthy", "healthy"],
        ),
    ],
)
def test_a_queue_is_judged_by_what_was_seen_of_it(looks, statuses):
    assert watched(*looks) == statuses


def key(version, created, **fields):
    return Key(source="acme/billing", version_id=f"hmac-v{version}", sealed=b"", created_at=created, **fields)


@pytest.mark.parametrize(
    ("keys", "now", "due"),
    [
        ([key(1, 0)], 30 * DAY - 1, False),
        ([key(1, 0)], 30 * DAY, True),
        ([key(9, 0, not_after=37 * DAY), key(10, 30 * DAY)], 31 * DAY, False),
        # A rotation that stopped half-way.
        ([key(9, 0), key(10, 30 * DAY)], 31 * DAY, True),
    ],
)
def test_a_key_is_rotated_when_it_has_served_its_time(keys, now, due):
    assert bool(due_for_rotation({"acme/billing": keys}, now, KeyPolicy())) is due


@pytest.mark.parametrize(
    ("polled", "now", "warned"),
    [
        (None, 36.5 * DAY, True),
        (29 * DAY, 36.5 * DAY, True),  # before there was a new key to fetch
        (31 * DAY, 36.5 * DAY, False),
        (None, 35.9 * DAY, False),
        (None, 37 * DAY, False),  # too late to warn: it has ended
    ],
)
def test_a_producer_that_has_not_fetched_the_next_key_is_warned(polled, now, warned):
    keys = [key(1, 0, not_after=37 * DAY, last_poll_at=polled), key(2, 30 * DAY)]
    found = expiry_warnings({"acme/billing": keys}, now, DAY)
    assert bool(found) is warned
    again = expiry_warnings({"acme/billing": keys}, now + 60, DAY)
    assert [event.event_id for event in again] == [event.event_id for event in found]


def test_what_is_over_is_found_and_nothing_else():
    registry = Registry(TtlPolicy(), None)
    route = Route(target="bot", command="old", tenant="acme", queue_arn="q", expires_at=10.0)
    grant = Grant(source="a/b", target="bot", command="old", expires_at=10.0)
    ban = Ban(source="a/b", mode=BanMode.WARM, until=10.0)
    over = [route, ban, grant]
    for entry in over:
        registry.put(entry)
        longer = {"until": 11.0} if isinstance(entry, Ban) else {"expires_at": 11.0}
        other = {"source": "c/d"} if isinstance(entry, Ban) else {"command": "new"}
        registry.put(msgspec.structs.replace(entry, **other, **longer))
    assert sorted(map(repr, what_is_over(registry, 10.0))) == sorted(map(repr, over))
    assert keys_by_source(registry) == {}
