"""What every implementation of `Tables` does alike."""

from __future__ import annotations

import uuid
from contextlib import nullcontext

import anyio
import pytest
import pytest_asyncio

from snavio.aws.errors import ConditionFailed, NotFound, Permanent, Transient
from snavio.aws.values import (
    Absent,
    AllOf,
    AnyOf,
    AtLeast,
    AtMost,
    Below,
    Change,
    Check,
    Delete,
    Differs,
    Equals,
    Exists,
    Put,
    SortRange,
    Update,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY = {"pk": "a"}


@pytest_asyncio.fixture(loop_scope="session")
async def table(world):
    return await world.table(key=["pk"])


@pytest_asyncio.fixture(loop_scope="session")
async def sorted_table(world):
    return await world.table(key=["pk", "sk"])


async def test_an_item_comes_back_as_it_was_put(world, table):
    item = {
        "pk": "a",
        "text": "ü 😀",
        "empty": "",
        "int": -(10**37),
        "zero": 0,
        "float": 0.1,
        "small": 1.5e-7,
        "true": True,
        "false": False,
        "none": None,
        "bytes": b"\x00\xff",
        "list": [1, "two", b"3", None, [], {}],
        "map": {"deep": {"er": [{"x": True}]}, "with.dot": 1},
        "size": "a reserved word",
    }
    await world.tables.put(table, item)

    found = await world.tables.get(table, KEY)

    assert found == item
    # Equality alone would let 1, 1.0 and True pass for one another.
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in item.items()
    }
    assert await world.tables.get(table, KEY, consistent=False) == item


async def test_an_absent_item_is_none(world, table):
    assert await world.tables.get(table, {"pk": "nobody"}) is None


async def test_a_put_replaces_the_whole_item(world, table):
    await world.tables.put(table, {"pk": "a", "old": 1})
    await world.tables.put(table, {"pk": "a", "new": 2})
    assert await world.tables.get(table, KEY) == {"pk": "a", "new": 2}


CONDITIONS = [
    (Below("n", 6), True),
    (Below("n", 5), False),
    (AtMost("n", 5), True),
    (AtMost("n", 4.5), False),
    (AtLeast("n", 5), True),
    (AtLeast("n", 6), False),
    (Below("s", "n"), True),
    (Below("s", 9), False),
    (Below("absent", 9), False),
    (AtLeast("absent", 0), False),
    (Equals("n", 5), True),
    (Equals("n", "5"), False),
    (Equals("absent", 5), False),
    (Equals("one", True), False),
    (Equals("yes", True), True),
    (Equals("yes", 1), False),
    (Differs("n", 5), False),
    (Differs("n", 6), True),
    (Differs("n", "5"), True),
    (Differs("absent", 5), True),
    (Exists("n"), True),
    (Exists("absent"), False),
    (Absent("absent"), True),
    (Absent("n"), False),
    (AllOf((Exists("n"), Equals("s", "m"))), True),
    (AllOf((Exists("n"), Equals("s", "x"))), False),
    (AnyOf((Absent("n"), Equals("s", "m"))), True),
    (AnyOf((Absent("n"), Equals("s", "x"))), False),
    (AllOf(()), True),
    (AnyOf(()), False),
    (AllOf((AnyOf((Exists("n"),)),)), True),
    (AllOf((Exists("n"), AnyOf((Below("n", 1), AllOf((AtLeast("n", 5), AtMost("n", 5))))))), True),
]


async def test_a_write_happens_exactly_when_its_condition_holds(world, table):
    item = {"pk": "a", "n": 5, "s": "m", "one": 1, "yes": True}
    await world.tables.put(table, item)
    for condition, expected in CONDITIONS:
        held = nullcontext() if expected else pytest.raises(ConditionFailed)
        with held as failure:
            await world.tables.put(table, item, condition=condition)
        assert failure is None or failure.value.old == item, condition


async def test_a_failed_condition_tells_what_it_found(world, table):
    old = {"pk": "a", "v": 1}
    await world.tables.put(table, old)
    for call in (
        world.tables.put(table, {"pk": "a", "v": 2}, condition=Absent("pk")),
        world.tables.update(table, KEY, Change(assign={"v": 2}), condition=Equals("v", 9)),
        world.tables.delete(table, KEY, condition=Equals("v", 9)),
    ):
        with pytest.raises(ConditionFailed) as failure:
            await call
        assert failure.value.old == old
    assert await world.tables.get(table, KEY) == old


async def test_a_failed_condition_on_an_absent_item_found_nothing(world, table):
    with pytest.raises(ConditionFailed) as failure:
        await world.tables.update(table, KEY, Change(add={"n": 1}), condition=Exists("pk"))
    assert failure.value.old is None
    assert await world.tables.get(table, KEY) is None


async def test_an_update_assigns_adds_and_removes_and_returns_the_item_whole(world, table):
    created = await world.tables.update(
        table, KEY, Change(assign={"name": "x", "m": {"y": [1]}}, add={"n": 2})
    )
    assert created == {"pk": "a", "name": "x", "m": {"y": [1]}, "n": 2}

    changed = await world.tables.update(
        table, KEY, Change(assign={"status": None}, add={"n": -5, "other": 1}, remove=("name", "never"))
    )

    assert changed == {"pk": "a", "m": {"y": [1]}, "n": -3, "other": 1, "status": None}
    assert await world.tables.get(table, KEY) == changed


async def test_an_update_without_a_change_makes_the_item_exist(world, table):
    assert await world.tables.update(table, KEY, Change()) == KEY
    assert await world.tables.get(table, KEY) == KEY


@pytest.mark.parametrize(
    "change",
    [
        Change(assign={"pk": "b"}),
        Change(assign={"x": 1}, remove=("x",)),
        Change(assign={"x": 1}, add={"x": 1}),
        Change(add={"text": 1}),
        Change(assign={"big": "x" * 410_000}),
    ],
    ids=["key", "assign-and-remove", "assign-and-add", "add-to-text", "too-large"],
)
async def test_a_change_that_makes_no_sense_is_refused(world, table, change):
    await world.tables.put(table, {"pk": "a", "text": "x"})
    with pytest.raises(Permanent):
        await world.tables.update(table, KEY, change)
    assert await world.tables.get(table, KEY) == {"pk": "a", "text": "x"}


async def test_a_deleted_item_is_gone_and_deleting_it_again_is_no_error(world, table):
    await world.tables.put(table, {"pk": "a", "v": 1})
    await world.tables.delete(table, KEY, condition=Equals("v", 1))
    assert await world.tables.get(table, KEY) is None
    await world.tables.delete(table, KEY)


async def test_of_twenty_writers_one_is_first(world, table):
    won = []

    async def write(number):
        try:
            await world.tables.put(table, {"pk": "a", "by": number}, condition=Absent("pk"))
            won.append(number)
        except ConditionFailed:
            pass

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(write, number)

    assert len(won) == 1
    assert (await world.tables.get(table, KEY))["by"] == won[0]


async def test_a_bounded_counter_is_never_exceeded_by_twenty_writers(world, table):
    """The token bucket of DESIGN: add three while no more than 27 were issued before."""
    await world.tables.put(table, {"pk": "a", "issued": 0})
    seen, refused = [], []

    async def reserve():
        try:
            item = await world.tables.update(
                table, KEY, Change(add={"issued": 3}), condition=AtMost("issued", 30 - 3)
            )
            seen.append(item["issued"])
        except ConditionFailed as failure:
            refused.append(failure.old["issued"])

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(reserve)

    assert sorted(seen) == [3 * n for n in range(1, 11)]
    assert refused == [30] * 10


async def test_a_transaction_does_all_of_its_writes(world, table):
    await world.tables.put(table, {"pk": "gone"})
    await world.tables.put(table, {"pk": "checked", "v": 1})
    await world.tables.transact(
        [
            Put(table, {"pk": "put", "b": b"x"}, Absent("pk")),
            Update(table, {"pk": "updated"}, Change(add={"n": 1})),
            Delete(table, {"pk": "gone"}),
            Check(table, {"pk": "checked"}, Equals("v", 1)),
        ]
    )
    found = [await world.tables.get(table, {"pk": pk}) for pk in ("put", "updated", "gone", "checked")]
    assert found == [{"pk": "put", "b": b"x"}, {"pk": "updated", "n": 1}, None, {"pk": "checked", "v": 1}]


async def test_a_transaction_does_none_of_its_writes_when_a_condition_fails(world, table):
    old = {"pk": "taken", "v": 1}
    await world.tables.put(table, old)
    with pytest.raises(ConditionFailed) as failure:
        await world.tables.transact(
            [
                Put(table, {"pk": "new"}),
                Update(table, {"pk": "updated"}, Change(add={"n": 1})),
                Put(table, {"pk": "taken", "v": 2}, Absent("pk")),
            ]
        )
    assert (failure.value.old, failure.value.index) == (old, 2)
    found = [await world.tables.get(table, {"pk": pk}) for pk in ("new", "updated", "taken")]
    assert found == [None, None, old]


async def test_a_transaction_repeated_with_its_token_acts_once(world, table):
    writes = [Update(table, KEY, Change(add={"n": 1})), Put(table, {"pk": "new"}, Absent("pk"))]
    first, second = (str(uuid.uuid4()) for _ in range(2))
    await world.tables.transact(writes, token=first)
    await world.tables.transact(writes, token=first)
    assert await world.tables.get(table, KEY) == {"pk": "a", "n": 1}

    await world.tables.transact(writes[:1], token=second)
    await world.tables.transact(writes[:1])
    assert await world.tables.get(table, KEY) == {"pk": "a", "n": 3}

    with pytest.raises(Permanent) as refusal:
        await world.tables.transact([Put(table, {"pk": "other"})], token=first)
    assert refusal.value.code == "IdempotentParameterMismatchException"


async def test_transactions_that_meet_leave_no_half(world, table):
    """Each moves one from a to b; whatever conflicts, nothing appears or disappears."""
    await world.tables.put(table, {"pk": "a", "n": 10})
    await world.tables.put(table, {"pk": "b", "n": 0})

    async def move():
        moving = [
            Update(table, {"pk": "a"}, Change(add={"n": -1}), AtLeast("n", 1)),
            Update(table, {"pk": "b"}, Change(add={"n": 1})),
        ]
        while True:
            try:
                await world.tables.transact(moving)
            except Transient:
                continue
            except ConditionFailed:
                pass
            return

    async with anyio.create_task_group() as tasks:
        for _ in range(15):
            tasks.start_soon(move)

    assert await world.tables.get(table, {"pk": "a"}) == {"pk": "a", "n": 0}
    assert await world.tables.get(table, {"pk": "b"}) == {"pk": "b", "n": 10}


@pytest.mark.parametrize("count", [0, 101])
async def test_a_transaction_of_none_or_too_many_is_refused(world, table, count):
    with pytest.raises(Permanent):
        await world.tables.transact([Put(table, {"pk": str(n)}) for n in range(count)])


async def test_a_transaction_naming_an_item_twice_or_a_long_token_is_refused(world, table):
    with pytest.raises(Permanent):
        await world.tables.transact([Put(table, KEY), Delete(table, KEY)])
    with pytest.raises(Permanent):
        await world.tables.transact([Put(table, KEY)], token="x" * 37)
    assert await world.tables.get(table, KEY) is None


async def test_a_batch_of_25_is_written(world, table):
    items = [{"pk": str(n), "b": bytes([n]), "m": {"n": [n]}} for n in range(25)]
    assert await world.tables.put_batch(table, items) == []
    assert [await world.tables.get(table, {"pk": str(n)}) for n in range(25)] == items
    assert await world.tables.put_batch(table, []) == []


@pytest.mark.parametrize(
    "items",
    [
        [{"pk": str(n)} for n in range(26)],
        [{"pk": "a"}, {"pk": "b"}, {"pk": "a", "x": 1}],
        [{"pk": "a"}, {"pk": "b", "x": "x" * 409_600}],
    ],
    ids=["too-many", "twice-the-same-key", "too-large"],
)
async def test_a_batch_beyond_the_limits_of_dynamodb_is_refused_whole(world, table, items):
    with pytest.raises(Permanent) as refusal:
        await world.tables.put_batch(table, items)
    assert refusal.value.code == "ValidationException"
    assert [page async for page in world.tables.scan(table)] == []


@pytest.mark.parametrize(
    "item",
    [
        {"pk": "a", "x": "ü" * 204_800},
        {"pk": "a", "x": b"x" * 409_600},
        {"pk": "a", "x": 10**38},
        {"pk": "a", "x": float("nan")},
        {"pk": "a", "x": float("inf")},
        {"pk": "a", "x": {1, 2}},
        {"pk": "a", "x": "\ud800"},
        {"pk": ""},
        {"x": "no key"},
    ],
    ids=["text", "bytes", "digits", "nan", "infinity", "set", "surrogate", "empty-key", "no-key"],
)
async def test_an_item_dynamodb_cannot_keep_is_refused(world, table, item):
    with pytest.raises(Permanent):
        await world.tables.put(table, item)


async def _pages(world, table, **query):
    cursor, pages = None, []
    while True:
        page = await world.tables.query(table, ("pk", "a"), cursor=cursor, **query)
        pages.append([item["sk"] for item in page.items])
        if page.cursor is None:
            return pages
        cursor = page.cursor


async def test_a_query_gives_one_partition_in_order_a_page_at_a_time(world, sorted_table):
    for n in (3, 1, 4, 0, 2):
        await world.tables.put(sorted_table, {"pk": "a", "sk": f"k{n}"})
    await world.tables.put(sorted_table, {"pk": "b", "sk": "k9"})
    everything = [f"k{n}" for n in range(5)]

    assert (await _pages(world, sorted_table))[0] == everything
    assert (await _pages(world, sorted_table, descending=True))[0] == everything[::-1]
    for descending in (False, True):
        pages = await _pages(world, sorted_table, limit=2, descending=descending)
        assert all(len(page) <= 2 for page in pages)
        assert [sk for page in pages for sk in page] == sorted(everything, reverse=descending)
    assert (await world.tables.query(sorted_table, ("pk", "nobody"))).items == []


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (SortRange("sk", low="b", high="c"), ["b", "ba", "c"]),
        (SortRange("sk", low="ba"), ["ba", "c", "d"]),
        (SortRange("sk", high="b"), ["a", "b"]),
        (SortRange("sk", prefix="b"), ["b", "ba"]),
        (SortRange("sk"), ["a", "b", "ba", "c", "d"]),
    ],
    ids=str,
)
async def test_a_query_keeps_within_its_range(world, sorted_table, sort, expected):
    for sk in ("a", "b", "ba", "c", "d"):
        await world.tables.put(sorted_table, {"pk": "a", "sk": sk})
    assert (await _pages(world, sorted_table, sort=sort))[0] == expected


async def test_numbers_sort_as_numbers(world):
    table = await world.table(key=["pk", "nseq"])
    for n in (10, 9, 100):
        await world.tables.put(table, {"pk": "log", "nseq": n})
    page = await world.tables.query(table, ("pk", "log"), sort=SortRange("nseq", low=9, high=10))
    assert [item["nseq"] for item in page.items] == [9, 10]


async def test_a_sort_range_with_prefix_and_bounds_is_refused(world, sorted_table):
    with pytest.raises(Permanent):
        await world.tables.query(sorted_table, ("pk", "a"), sort=SortRange("sk", low="a", prefix="b"))


async def test_an_index_is_queried_by_its_own_key(world):
    table = await world.table(key=["pk"], indexes={"by-owner": ["owner", "nrank"]})
    for n in range(6):
        await world.tables.put(table, {"pk": str(n), "owner": "odd" if n % 2 else "even", "nrank": -n})
    await world.tables.put(table, {"pk": "unowned", "nrank": 0})
    cursor, found = None, []
    while True:
        page = await world.tables.query(table, ("owner", "odd"), index="by-owner", limit=2, cursor=cursor)
        found += [item["pk"] for item in page.items]
        if page.cursor is None:
            break
        cursor = page.cursor
    assert found == ["5", "3", "1"]


@pytest.mark.parametrize("segments", [1, 3])
async def test_the_segments_of_a_scan_partition_the_table(world, sorted_table, segments):
    expected = {(f"p{n % 37}", f"s{n}") for n in range(75)}
    items = [{"pk": pk, "sk": sk, "pad": "x" * 20_000} for pk, sk in sorted(expected)]
    for start in range(0, 75, 25):
        await world.tables.put_batch(sorted_table, items[start : start + 25])
    found = [
        (item["pk"], item["sk"])
        for segment in range(segments)
        async for page in world.tables.scan(sorted_table, segment=segment, segments=segments)
        for item in page
    ]
    assert len(found) == 75
    assert set(found) == expected


@pytest.mark.parametrize(("segment", "segments"), [(1, 1), (-1, 2), (0, 0)])
async def test_a_segment_that_is_none_is_refused(world, table, segment, segments):
    with pytest.raises(Permanent):
        async for _ in world.tables.scan(table, segment=segment, segments=segments):
            pass


async def test_a_table_that_is_not_there_is_not_found(world):
    missing = "contract-missing"

    async def scan():
        return [page async for page in world.tables.scan(missing)]

    for call in (
        world.tables.get(missing, KEY),
        world.tables.put(missing, {"pk": "a"}),
        world.tables.update(missing, KEY, Change(add={"n": 1})),
        world.tables.delete(missing, KEY),
        world.tables.transact([Put(missing, {"pk": "a"})]),
        world.tables.put_batch(missing, [{"pk": "a"}]),
        world.tables.query(missing, ("pk", "a")),
        scan(),
    ):
        with pytest.raises(NotFound):
            await call
