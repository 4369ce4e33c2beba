"""The registry and its changelog: nothing skipped, nothing numbered twice, current when it says so."""

import anyio
import msgspec
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from snavio.aws.errors import Permanent, SnavioError
from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.tables import MemoryTables
from snavio.aws.memory.vault import MemoryVault
from snavio.domain.freshness import Phase, TtlPolicy
from snavio.domain.models import Ban, BanMode, Grant, Key, Quota, RateLimit, Route, Sensitivity, Settings
from snavio.registry import grants as grants_module
from snavio.registry.changelog import Change
from snavio.registry.grants import GrantTable
from snavio.registry.keeper import Keeper
from snavio.registry.rows import MalformedRowError, decode_entry, encode_entry, key_of
from snavio.registry.schemas import SchemaError, compile_schema
from snavio.registry.sealing import Sealer, UnsealError
from snavio.registry.store import RegistryStore
from snavio.registry.uses import GrantUse, GrantUses
from snavio.wire.names import Names

NAMES = Names()


class Observer:
    def __init__(self):
        self.loads = []
        self.refreshes = []
        self.failures = []

    def loaded(self, **facts):
        self.loads.append(facts)

    def refreshed(self, **facts):
        self.refreshes.append(facts)

    def refresh_failed(self, error):
        self.failures.append(error)


class Setup:
    def __init__(self):
        self.clock = ManualClock()
        self.tables = MemoryTables(self.clock)
        self.tables.create(NAMES.registry, key=("pk", "sk"))
        self.tables.create(NAMES.changelog, key=("pk", "seq"))
        self.store = RegistryStore(self.tables, NAMES, clock=self.clock)
        self.vault = MemoryVault("alias/test")
        self.sealer = Sealer(self.vault)
        self.observer = Observer()

    def keeper(self):
        return Keeper(
            self.tables, NAMES, self.sealer, ttls=TtlPolicy(), clock=self.clock, observer=self.observer
        )


def route(command="go", **fields):
    return Route(target="t", command=command, tenant="owner", queue_arn="arn:aws:sqs:eu:1:q", **fields)


def grant(n=0, **fields):
    return Grant(source=f"acme/s{n}", target="t", command="go", **fields)


ENTRIES = [
    route(schema={"type": "object"}, rate_limit=RateLimit(5, 1)),
    grant(sensitivity=Sensitivity.CRITICAL),
    Key(source="acme/s", version_id="hmac-v1", sealed=b"\x00\x01", created_at=1.0),
    Ban(source="acme/s", mode=BanMode.WARM, target="t", command="go", until=9.0),
    Ban(source="acme/s", mode=BanMode.OUTRIGHT),
    Quota(source="acme/s", target="t", command="go", rate_limit=RateLimit(5)),
    Settings(),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_every_entry_survives_its_row(entry):
    pk, sk = key_of(entry)
    assert encode_entry(decode_entry(pk, sk, encode_entry(entry))) == encode_entry(entry)


@pytest.mark.parametrize(
    ("pk", "sk", "body"),
    [
        ("route#t", "go", "not json"),
        ("route#t", "go", '{"target":"t"}'),
        ("route#t", "other", encode_entry(route())),
        ("grant#t#go", "acme/s0", encode_entry(route())),
        ("what#t", "go", "{}"),
        ("route#t", "go", None),
        ("route#T", "go", encode_entry(route()).replace('"t"', '"T"')),
    ],
)
def test_a_row_that_is_no_valid_entry_is_refused(pk, sk, body):
    with pytest.raises(MalformedRowError):
        decode_entry(pk, sk, body)


async def test_changes_are_numbered_without_gaps_under_concurrency():
    setup = Setup()
    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(lambda n=n: setup.store.put_grant(grant(n), actor=f"a{n}"))
    changes = await setup.store.changes()
    assert [change.seq for change in changes] == list(range(1, 21))
    assert {change.sk for change in changes} == {f"acme/s{n}" for n in range(20)}


async def test_a_change_records_who_when_before_and_after_and_can_be_rolled_back():
    setup = Setup()
    first = await setup.store.put_route(route(expected_drain_seconds=100), actor="ann")
    second = await setup.store.put_route(route(expected_drain_seconds=200), actor="bob")
    assert (first.version, second.version) == (1, 2)
    [_, change] = await setup.store.changes()
    assert (change.actor, change.at) == ("bob", setup.clock())
    assert change.previous() == first
    assert change.entry() == second
    await setup.store.roll_back(2, actor="ann")
    restored = await setup.store.route("t", "go")
    assert restored.expected_drain_seconds == 100
    assert restored.version == 3, "a version is never used twice"
    with pytest.raises(SnavioError):
        await setup.store.roll_back(99, actor="ann")


async def test_a_change_that_changes_nothing_is_not_recorded():
    setup = Setup()
    await setup.store.put_grant(grant(), actor="a")
    assert await setup.store.put_grant(grant(), actor="a") is None
    assert not await setup.store.revoke_grant("acme/none", "t", "go", actor="a")
    assert await setup.store.last_seq() == 1


WARM = Ban(source="acme/s", mode=BanMode.WARM, until=100.0)


@pytest.mark.parametrize(
    ("standing", "replaced"),
    [
        ({"until": 150.0}, False),
        ({"until": 100.0, "reason": "other words"}, False),
        ({"until": 50.0}, True),
        ({"until": None}, False),
        ({"mode": BanMode.OUTRIGHT, "until": None}, False),
        ({"mode": BanMode.OUTRIGHT, "until": 50.0}, False),
        ({"mode": BanMode.COLD_ONLY, "until": 50.0}, False),
        # What is over stands in nobody's way.
        ({"mode": BanMode.OUTRIGHT, "until": 9.0}, True),
    ],
)
async def test_a_rule_replaces_no_ban_that_is_stricter_or_lasts_as_long(standing, replaced):
    setup = Setup()
    setup.store = RegistryStore(setup.tables, NAMES, clock=lambda: 10.0)
    before = msgspec.structs.replace(WARM, **standing)
    await setup.store.put_ban(before, actor="ann")
    assert await setup.store.add_ban(WARM, actor="slow") == (2 if replaced else None)
    assert await setup.store.bans_of("acme/s") == [WARM if replaced else before]


async def test_an_operator_replaces_any_ban_also_by_a_milder_one():
    setup = Setup()
    await setup.store.put_ban(Ban(source="acme/s", mode=BanMode.OUTRIGHT), actor="ann")
    await setup.store.put_ban(WARM, actor="ann")
    assert await setup.store.bans_of("acme/s") == [WARM]


async def test_a_rule_that_meets_an_operator_on_its_way_gives_way():
    """What decides is the ban that stands when the new one is written, not one read before."""
    setup = Setup()
    operators = Ban(source="acme/s", mode=BanMode.OUTRIGHT)
    transact = setup.tables.transact

    async def overtaken(writes, **kwargs):
        setup.tables.transact = transact
        await setup.store.put_ban(operators, actor="ann")
        await transact(writes, **kwargs)

    setup.tables.transact = overtaken
    assert await setup.store.add_ban(msgspec.structs.replace(WARM, until=2e9), actor="slow") is None
    assert await setup.store.bans_of("acme/s") == [operators]


async def test_a_keeper_follows_every_change_with_one_query():
    setup = Setup()
    await setup.store.put_route(route(), actor="a")
    keeper = setup.keeper()
    assert await keeper.refresh()
    assert setup.observer.loads[0]["entries"] == 1
    await setup.store.put_grant(grant(), actor="a")
    setup.clock.advance(1)
    assert await keeper.refresh()
    registry = keeper.registry
    assert registry.grant_phase("acme/s0", registry.routes["t", "go"], setup.clock()) is Phase.FRESH
    await setup.store.revoke_grant("acme/s0", "t", "go", actor="a")
    await setup.store.delete_route("t", "go", actor="a")
    setup.clock.advance(1)
    await keeper.refresh()
    assert registry.route("t", "go", setup.clock()) is None
    assert registry.seq == 4
    assert registry.as_of == setup.clock()
    assert len(setup.observer.loads) == 1, "deltas, not reloads"


async def test_callers_at_the_same_time_share_one_query():
    setup = Setup()
    keeper = setup.keeper()
    await keeper.refresh()
    queries = 0
    query = setup.tables.query

    async def counted(*args, **kwargs):
        nonlocal queries
        queries += 1
        await anyio.lowlevel.checkpoint()
        setup.clock.advance(0.001)
        return await query(*args, **kwargs)

    setup.tables.query = counted
    asked_at = setup.clock() - 0.0001
    setup.clock.advance(1)
    keeper.registry.as_of -= 10
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(keeper.refresh_since, asked_at)
    assert queries == 1


async def test_a_gap_in_the_log_leads_to_a_reload():
    setup = Setup()
    keeper = setup.keeper()
    await keeper.refresh()
    for n in range(3):
        await setup.store.put_grant(grant(n), actor="a")
    del setup.tables.tables[NAMES.changelog].items["log", 1]
    setup.clock.advance(1)
    assert await keeper.refresh()
    assert len(setup.observer.loads) == 2
    assert len(keeper.registry.grants) == 3


async def test_a_failed_refresh_is_told_and_what_is_remembered_goes_on_ageing():
    setup = Setup()
    await setup.store.put_route(route(), actor="a")
    keeper = setup.keeper()
    await keeper.refresh()
    as_of = keeper.registry.as_of
    del setup.tables.tables[NAMES.changelog]
    setup.clock.advance(700)
    assert not await keeper.refresh()
    assert len(setup.observer.failures) == 1
    assert keeper.registry.as_of == as_of
    assert keeper.registry.routing_phase(setup.clock()) is Phase.EXPIRED


async def test_malformed_rows_are_counted_and_left_out():
    setup = Setup()
    await setup.store.put_grant(grant(), actor="a")
    await setup.tables.put(NAMES.registry, {"pk": "grant#t#go", "sk": "BAD", "body": "{}"})
    keeper = setup.keeper()
    await keeper.refresh()
    assert setup.observer.loads[0]["malformed"] == 1
    assert len(keeper.registry.grants) == 1


async def test_a_sealed_secret_opens_only_where_it_belongs():
    setup = Setup()
    seal = await setup.sealer.new_key("alias/test", 0.0)
    sealed = setup.sealer.seal(b"secret", seal_id=seal.id, source="acme/a", version_id="hmac-v1")
    assert b"secret" not in sealed
    other = Sealer(setup.vault)
    with pytest.raises(UnsealError):
        other.unseal(sealed, source="acme/a", version_id="hmac-v1")
    await other.open(seal)
    assert other.unseal(sealed, source="acme/a", version_id="hmac-v1") == b"secret"
    for source, version_id, blob in [
        ("acme/b", "hmac-v1", sealed),
        ("acme/a", "hmac-v2", sealed),
        ("acme/a", "hmac-v1", sealed[:-1]),
        ("acme/a", "hmac-v1", b""),
    ]:
        with pytest.raises(UnsealError):
            other.unseal(blob, source=source, version_id=version_id)
    with pytest.raises(Permanent):
        await setup.vault.open_data_key(seal.sealed, context={"purpose": "another"})


def test_a_schema_says_where_and_which_rule_but_not_what_it_found():
    check = compile_schema(
        {"type": "object", "required": ["to"], "properties": {"to": {"type": "string", "pattern": "^a+$"}}}
    )
    assert check(msgspec.Raw(b'{"to":"aaa"}')) is None
    fault = check(msgspec.Raw(b'{"to":"private-secret"}'))
    assert fault.startswith("command.payload.to ")
    assert "private-secret" not in fault
    assert check(msgspec.Raw(b"[]"))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no-such-type"},
        [],
        "text",
        {"$ref": "http://127.0.0.1/x.json"},
        {"$ref": "file:///etc/passwd"},
    ],
)
def test_a_schema_that_is_none_or_leads_outside_is_refused(schema):
    with pytest.raises(SchemaError):
        compile_schema(schema)


def test_a_hostile_pattern_takes_linear_time():
    check = compile_schema({"type": "string", "pattern": "^(a+)+$"})
    assert check(msgspec.Raw(b'"' + b"a" * 50_000 + b'!"'))


def test_only_uses_after_the_revocation_slipped_through():
    uses = GrantUses()
    for n in range(5):
        uses.note(GrantUse("acme/s0", "t", "go", str(n), float(n), 0.5))
        uses.note(GrantUse("acme/s1", "t", "go", f"other-{n}", float(n), 0.5))
    change = Change(seq=1, pk="grant#t#go", sk="acme/s0", at=3.0, actor="a", before="{}", after=None)
    assert [use.command_id for use, _ in uses.slipped([change])] == ["3", "4"]
    uses.settle(4.0)
    assert len(uses) == 2


class GrantModel(RuleBasedStateMachine):
    """The compact table behaves as a dict does."""

    def __init__(self):
        super().__init__()
        self.table = GrantTable()
        self.model = {}

    names = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("12"))
    profiles = st.sampled_from([None, *Sensitivity])

    @rule(name=names, profile=profiles, ends=st.sampled_from([None, 5.0, 50.0]))
    def put(self, name, profile, ends):
        source, target, command = name
        self.table.put(
            Grant(source=f"s/{source}", target=target, command=command, sensitivity=profile, expires_at=ends)
        )
        self.model[name] = (profile, ends)

    @rule(name=names)
    def revoke(self, name):
        self.table.revoke(f"s/{name[0]}", name[1], name[2])
        self.model.pop(name, None)

    @rule()
    def reload(self):
        self.table.load(
            Grant(source=f"s/{s}", target=t, command=c, sensitivity=profile, expires_at=ends)
            for (s, t, c), (profile, ends) in self.model.items()
        )

    @rule()
    def fold(self):
        limit, grants_module._FOLD_AT = grants_module._FOLD_AT, 0
        try:
            if self.table._changed:
                self.table._fold_when_large()
        finally:
            grants_module._FOLD_AT = limit

    @invariant()
    def agrees(self):
        assert len(self.table) == len(self.model)
        for s in "abc":
            for t in "xy":
                for c in "12":
                    found = self.table.find(f"s/{s}", t, c, 10.0, Sensitivity.LOW)
                    profile, ends = self.model.get((s, t, c), (None, 0.0))
                    held = (s, t, c) in self.model and (ends is None or ends > 10.0)
                    assert found == ((profile or Sensitivity.LOW) if held else None)


GrantModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
test_the_compact_table_behaves_as_a_dict = GrantModel.TestCase


def test_a_million_grants_take_nine_bytes_each():
    sources = [f"tenant-{n // 10}/service-{n % 10}" for n in range(2000)]
    pairs = [(f"target-{n}", "go") for n in range(500)]
    source_ids, pair_ids = np.divmod(np.arange(1_000_000), 500)
    table = GrantTable()
    table.load_columns(sources, pairs, source_ids, pair_ids, np.zeros(1_000_000), {})
    assert len(table) == 1_000_000
    assert table.nbytes == 9_000_000
    assert table.find("tenant-199/service-9", "target-499", "go", 0.0, Sensitivity.LOW) is Sensitivity.LOW
    assert table.find("tenant-199/service-9", "target-500", "go", 0.0, Sensitivity.LOW) is None
