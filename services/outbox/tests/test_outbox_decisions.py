"""What the worker decides without touching anything: who reads what, how far is settled, where webhooks may lead."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.outbox.addresses import is_allowed, networks
from snavio.outbox.batching import MAX_BYTES, MAX_ROWS, next_batch, published_bytes
from snavio.outbox.progress import Progress
from snavio.outbox.shards import ShardLease, plan, readable, swept_before
from snavio.outbox.values import Shard, read_row
from snavio.outbox.webhook import judged
from snavio.telemetry.deliveries import GiveUp, Sent, TryAgain
from snavio.wire.outbox import OutboxRow


# Progress
@given(st.lists(st.integers(0, 30), unique=True, max_size=30), st.data())
def test_a_checkpoint_never_passes_a_record_in_hand(taken, data):
    taken.sort()
    progress, settled = Progress(), set()
    for number in taken:
        progress.take(f"{number:03d}", float(number))
    for number in data.draw(st.permutations(taken)):
        progress.settle(f"{number:03d}")
        settled.add(number)
        open_ones = [other for other in taken if other not in settled]
        behind = [other for other in taken if other in settled and (not open_ones or other < open_ones[0])]
        assert progress.checkpoint == (f"{behind[-1]:03d}" if behind else None)
        assert progress.position(99.0) == (float(open_ones[0]) if open_ones else 99.0)
    assert progress.in_hand == 0


# Shards
def lease(shard, **fields):
    return ShardLease(shard=shard, stream="s", **fields)


def test_a_child_waits_for_its_parent_to_be_finished_or_gone():
    shards = [Shard("a"), Shard("b", "a"), Shard("c", "trimmed")]
    assert readable(shards, {}) == ["a", "c"]
    assert readable(shards, {"a": lease("a", finished=True)}) == ["b", "c"]


FLEET = [f"worker-{number}" for number in range(5)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.sets(st.sampled_from(FLEET), min_size=1), st.data())
def test_whoever_is_alive_shares_every_shard_evenly_after_a_few_rounds(count, alive, data):
    """From any state of the leases, some held by the dead, with workers acting one after another."""
    shards = [Shard(f"shard-{number}") for number in range(count)]
    owners = data.draw(st.lists(st.sampled_from(["", *FLEET]), min_size=count, max_size=count))
    leases = {
        shard.id: lease(shard.id, owner=owner, until=100.0 if owner in alive else 5.0)
        for shard, owner in zip(shards, owners, strict=True)
        if owner
    }
    for _ in range(3):
        for me in data.draw(st.permutations(sorted(alive))):
            decided = plan(shards, leases, me=me, workers=alive, now=10.0)
            for shard in decided.claim:
                assert shard not in leases or not leases[shard].held(10.0)
                leases[shard] = lease(shard, owner=me, until=100.0)
            for shard in decided.release:
                assert leases[shard].owner == me
                leases[shard] = lease(shard)
    held = [leases[shard.id].owner for shard in shards]
    assert set(held) <= alive
    shares = [held.count(worker) for worker in alive]
    assert max(shares, default=0) <= -(-count // len(alive))


def test_leases_of_shards_that_are_gone_are_forgotten():
    leases = {"old": lease("old", finished=True), "busy": lease("busy", owner="x", until=99.0)}
    assert plan([Shard("new")], leases, me="me", workers=(), now=10.0).forget == ("old",)


@pytest.mark.parametrize(
    ("position", "before"),
    [
        (1000.0, 940.0),  # read to the tip: whatever is a minute old was missed
        (900.0, 900.0),  # behind: what it has not passed is still its own
        (0.0, 100.0),  # stuck beyond patience: no more waiting
    ],
)
def test_the_sweeper_takes_only_what_the_stream_has_passed(position, before):
    leases = {"a": lease("a", position=position)}
    assert swept_before(1000.0, [Shard("a")], leases, missed_after=60, patience=900) == before


def test_a_shard_nobody_has_read_holds_the_sweeper_back():
    assert swept_before(1000.0, [Shard("a")], {}, missed_after=60, patience=900) == 100.0
    assert swept_before(1000.0, [], {}, missed_after=60, patience=900) == 940.0


# Batches
def row(size):
    return OutboxRow("t#0", "id", "t", "snavio.x", "t/s", "x" * size, 0, 0)


@given(st.lists(st.integers(0, 300_000), max_size=30))
def test_batches_keep_to_the_limits_of_sns_and_always_move_on(sizes):
    rows = [row(size) for size in sizes]
    while rows:
        count = next_batch(rows)
        batch, rows = rows[:count], rows[count:]
        assert 1 <= count <= MAX_ROWS
        assert count == 1 or sum(map(published_bytes, batch)) <= MAX_BYTES


# Webhook addresses
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.170.2",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "240.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:db8::1",
        "not an address",
        "",
    ],
)
def test_no_address_inside_is_reachable(address):
    assert not is_allowed(address, ())


@pytest.mark.parametrize("address", ["1.1.1.1", "52.95.110.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses_are_reachable(address):
    assert is_allowed(address, ())


def test_an_operator_may_allow_a_network_by_name_and_gets_no_more():
    allowed = networks(["127.0.0.1/32"])
    assert is_allowed("127.0.0.1", allowed)
    assert not is_allowed("127.0.0.2", allowed)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, Sent),
        (204, Sent),
        (301, GiveUp),
        (307, GiveUp),
        (400, GiveUp),
        (404, GiveUp),
        (410, GiveUp),
        (429, TryAgain),
        (500, TryAgain),
        (503, TryAgain),
    ],
)
def test_answers_of_webhooks(status, kind):
    assert isinstance(judged(status), kind)


def test_rows_written_by_other_parts_of_the_platform_are_read_with_their_annotations():
    item = msgspec.structs.asdict(row(3)) | {"alerted": 1, "refused_at": 5, "unknown": "kept out"}
    read = read_row(item)
    assert (read.alerted, read.refused_at, read.key) == (1, 5, ("t#0", "id"))
