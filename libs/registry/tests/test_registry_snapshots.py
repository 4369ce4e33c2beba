"""Snapshots: what was published is what is loaded, and nothing that was touched since is."""

import hashlib
import zlib

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.tables import MemoryTables
from snavio.aws.memory.vault import MemoryVault
from snavio.aws.values import StoredObject
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Ban, BanMode, Grant, Key, Quota, RateLimit, Route, Sensitivity, Settings
from snavio.registry.grants import GrantTable
from snavio.registry.keeper import Keeper
from snavio.registry.sealing import Sealer
from snavio.registry.snapshot_parts import Kind, unpack
from snavio.registry.snapshot_pointer import decode_pointer, digest_of, encode_pointer, part_key, pointer_key
from snavio.registry.snapshot_publisher import Published, SnapshotPublisher, Superseded, TooLarge
from snavio.registry.snapshots import SnapshotPolicy, SnapshotReader
from snavio.registry.store import RegistryStore
from snavio.wire.names import Names

NAMES = Names()
DECISIVE = pointer_key(Kind.ROUTING)


class LocalSigner:
    def __init__(self):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.asked = 0

    async def public_key(self):
        self.asked += 1
        return self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    async def sign(self, digest):
        return self._key.sign(digest, ec.ECDSA(Prehashed(SHA256())))


class Observer:
    def __init__(self):
        self.refused = []
        self.loads = []

    def loaded(self, **facts):
        self.loads.append(facts["from_snapshot"])

    def refreshed(self, **facts):
        pass

    def refresh_failed(self, error):
        raise error

    def snapshot_loaded(self, pointer):
        pass

    def snapshot_refused(self, kind, reason, detail):
        self.refused.append((str(kind), str(reason)))


class Setup:
    def __init__(self, *, max_bytes=1_000_000):
        self.clock = ManualClock()
        self.tables = MemoryTables(self.clock)
        self.tables.create(NAMES.registry, key=("pk", "sk"))
        self.tables.create(NAMES.changelog, key=("pk", "seq"))
        self.objects = MemoryObjects(NAMES.bucket)
        self.store = RegistryStore(self.tables, NAMES, clock=self.clock)
        self.vault = MemoryVault("alias/test")
        self.signer = LocalSigner()
        self.observer = Observer()
        self.bucket = self.objects.buckets[NAMES.bucket]
        self.publisher = self.new_publisher(max_bytes)

    def new_publisher(self, max_bytes=1_000_000):
        return SnapshotPublisher(
            self.objects,
            self.tables,
            NAMES,
            self.signer,
            ttls=TtlPolicy(),
            max_bytes=max_bytes,
            keep_seconds=600,
            clock=self.clock,
        )

    def keeper(self, *, with_keys=True, snapshots=True, **policy):
        reader = SnapshotReader(
            self.objects,
            self.tables,
            NAMES,
            self.signer,
            SnapshotPolicy(**policy),
            clock=self.clock,
            observer=self.observer,
        )
        return Keeper(
            self.tables,
            NAMES,
            Sealer(self.vault) if with_keys else None,
            ttls=TtlPolicy(),
            clock=self.clock,
            observer=self.observer,
            snapshots=reader if snapshots else None,
        )

    async def populate(self):
        sealer = Sealer(self.vault)
        seal = await sealer.new_key("alias/test", self.clock())
        await self.store.put_seal_key(seal, actor="test")
        sealed = sealer.seal(b"s" * 32, seal_id=seal.id, source="acme/billing", version_id="hmac-v1")
        await self.store.put_key(
            Key(source="acme/billing", version_id="hmac-v1", sealed=sealed, created_at=1.0), actor="test"
        )
        route = Route(target="bot", command="notify", tenant="acme", queue_arn="arn:aws:sqs:r:1:q")
        await self.store.put_route(route, actor="test")
        for source, ends in (("acme/billing", None), ("acme/other", self.clock() + 50)):
            grant = Grant(
                source=source,
                target="bot",
                command="notify",
                sensitivity=Sensitivity.LOW,
                expires_at=ends,
            )
            await self.store.put_grant(grant, actor="test")
        await self.store.put_ban(Ban(source="evil/one", mode=BanMode.OUTRIGHT), actor="test")
        quota = Quota(source="acme/billing", target="bot", command="notify", rate_limit=RateLimit(limit=3))
        await self.store.put_quota(quota, actor="test")
        await self.store.put_settings(Settings(dispatch_mode="cold-only"), actor="test")

    async def publish(self, publisher=None):
        keeper = self.keeper(snapshots=False)
        await keeper.load()
        self.observer.loads.clear()
        return await (publisher or self.publisher).publish(keeper.registry)

    def pointer(self):
        return decode_pointer(self.bucket[DECISIVE].body).pointer

    def replace(self, key, body):
        self.bucket[key] = StoredObject(body, f'"{hashlib.md5(body).hexdigest()}"')

    async def resign(self, **fields):
        pointer = msgspec.structs.replace(self.pointer(), **fields)
        self.replace(DECISIVE, encode_pointer(pointer, await self.signer.sign(digest_of(pointer))))


@pytest.fixture
async def published():
    setup = Setup()
    await setup.populate()
    assert isinstance(await setup.publish(), Published)
    return setup


def facts(registry, now):
    return (
        registry.seq,
        registry.entries(),
        registry.settings,
        [msgspec.to_builtins(registry.grants.columns().ends)],
        sorted(registry.grants.of_target("bot")),
        registry.grants.find("acme/billing", "bot", "notify", now, Sensitivity.CRITICAL),
        registry.grants.find("acme/other", "bot", "notify", now + 60, Sensitivity.CRITICAL),
    )


async def test_a_cold_start_from_a_snapshot_knows_what_one_from_the_table_does(published):
    await published.store.revoke_grant("acme/other", "bot", "notify", actor="after the snapshot")
    warm, cold = published.keeper(), published.keeper(snapshots=False)
    await warm.load()
    await cold.load()
    now = published.clock()
    assert published.observer.loads == [True, False]
    assert facts(warm.registry, now) == facts(cold.registry, now)
    assert warm.registry.key("acme/billing", "hmac-v1") is not None


async def test_a_worker_without_keys_starts_though_the_key_part_is_damaged(published):
    ref = published.pointer().parts[Kind.HMAC]
    del published.bucket[part_key(Kind.HMAC, ref.sha256)]
    keeper = published.keeper(with_keys=False)
    await keeper.load()
    assert published.observer.loads == [True]
    assert not keeper.registry.knows_source("acme/billing")


async def _no_pointer(setup):
    del setup.bucket[DECISIVE]


async def _cut_pointer(setup):
    setup.replace(DECISIVE, setup.bucket[DECISIVE].body[:-20])


async def _edited_pointer(setup):
    pointer = setup.pointer()
    signature = decode_pointer(setup.bucket[DECISIVE].body).signature
    edited = msgspec.structs.replace(pointer, seq=pointer.seq - 1)
    setup.replace(DECISIVE, encode_pointer(edited, signature))


async def _foreign_signature(setup):
    pointer = setup.pointer()
    setup.replace(DECISIVE, encode_pointer(pointer, await LocalSigner().sign(digest_of(pointer))))


async def _other_pointer(setup):
    setup.replace(DECISIVE, setup.bucket[pointer_key(Kind.ACL)].body)


async def _old(setup):
    setup.clock.advance(301)


async def _from_the_future(setup):
    await setup.resign(generated_at=setup.clock() + 3600)


async def _put_back(setup):
    before = setup.bucket[DECISIVE].body
    await setup.publish()
    setup.replace(DECISIVE, before)


async def _ahead(setup):
    await setup.resign(seq=99)


async def _log_trimmed(setup):
    await setup.store.put_ban(Ban(source="evil/two", mode=BanMode.OUTRIGHT), actor="test")
    await setup.store.put_ban(Ban(source="evil/three", mode=BanMode.OUTRIGHT), actor="test")
    await setup.tables.delete(NAMES.changelog, {"pk": "log", "seq": setup.pointer().seq + 1})


def _part(setup, kind):
    return part_key(kind, setup.pointer().parts[kind].sha256)


async def _part_gone(setup):
    del setup.bucket[_part(setup, Kind.ACL)]


async def _part_cut(setup):
    key = _part(setup, Kind.ACL)
    setup.replace(key, setup.bucket[key].body[:-1])


async def _part_changed(setup):
    key = _part(setup, Kind.HMAC)
    body = bytearray(setup.bucket[key].body)
    body[len(body) // 2] ^= 1
    setup.replace(key, bytes(body))


async def _part_grown(setup):
    key = _part(setup, Kind.ROUTING)
    setup.replace(key, setup.bucket[key].body + b"x")


async def _declared_huge(setup):
    parts = setup.pointer().parts
    huge = msgspec.structs.replace(parts[Kind.ACL], raw_bytes=10**12)
    await setup.resign(parts={**parts, Kind.ACL: huge})


@pytest.mark.parametrize(
    ("damage", "refusal"),
    [
        (_no_pointer, ("snapshot", "missing")),
        (_cut_pointer, ("snapshot", "unreadable")),
        (_edited_pointer, ("snapshot", "bad-signature")),
        (_foreign_signature, ("snapshot", "bad-signature")),
        (_other_pointer, ("snapshot", "tampered")),
        (_old, ("snapshot", "stale")),
        (_from_the_future, ("snapshot", "stale")),
        (_put_back, ("snapshot", "rolled-back")),
        (_ahead, ("snapshot", "ahead-of-log")),
        (_log_trimmed, ("snapshot", "log-gap")),
        (_part_gone, ("acl", "missing")),
        (_part_cut, ("acl", "truncated")),
        (_part_changed, ("hmac", "tampered")),
        (_part_grown, ("snapshot", "too-large")),
        (_declared_huge, ("acl", "too-large")),
    ],
)
async def test_a_damaged_snapshot_is_refused_and_the_table_read(published, damage, refusal):
    await damage(published)
    published.observer.loads.clear()
    keeper = published.keeper()
    await keeper.load()
    assert published.observer.refused == [refusal]
    assert published.observer.loads == [False]
    assert keeper.registry.route("bot", "notify", published.clock()) is not None


async def test_a_snapshot_over_its_cap_leaves_the_last_one_standing(published):
    before = published.bucket[DECISIVE]
    outcome = await published.publish(published.new_publisher(max_bytes=100))
    assert isinstance(outcome, TooLarge)
    assert outcome.size_bytes > outcome.limit_bytes == 100
    assert published.bucket[DECISIVE] == before


async def test_a_publisher_that_lost_its_lead_cannot_overwrite_its_successor(published):
    """The successor publishes between the other's reading of the pointer and its writing."""
    paused = published.new_publisher()
    sign = published.signer.sign

    async def overtaken(digest):
        published.signer.sign = sign
        assert isinstance(await published.publish(published.new_publisher()), Published)
        return await sign(digest)

    published.signer.sign = overtaken
    assert isinstance(await published.publish(paused), Superseded)
    assert published.pointer().number == 2


async def test_the_same_registry_gives_the_same_parts_and_old_parts_go_in_time(published):
    first = published.pointer()
    await published.publish(published.new_publisher())
    assert published.pointer().parts == first.parts
    await published.store.revoke_grant("acme/other", "bot", "notify", actor="test")
    await published.publish()
    old = part_key(Kind.ACL, first.parts[Kind.ACL].sha256)
    assert old in published.bucket
    published.clock.advance(601)
    await published.publish()
    assert old not in published.bucket
    assert published.pointer().retired == []


async def test_every_path_of_the_documents_has_its_signed_pointer(published):
    for kind in Kind:
        body = msgspec.json.decode(published.bucket[f"snavio/registry/{kind}/latest.json"].body)
        assert body.keys() >= {"version_id", "generated_at", "ttl_policy", "signature"}
        assert body["seq"] == published.pointer().seq


async def test_secrets_are_sealed_in_a_snapshot(published):
    ref = published.pointer().parts[Kind.HMAC]
    raw = zlib.decompress(published.bucket[part_key(Kind.HMAC, ref.sha256)].body)
    assert b"s" * 32 not in raw
    assert unpack(Kind.HMAC, published.bucket[part_key(Kind.HMAC, ref.sha256)].body, ref.raw_bytes).keys


NAMED = st.sampled_from(["a", "b", "c"])
CHANGES = st.lists(st.tuples(NAMED, NAMED, NAMED, st.sampled_from([None, *Sensitivity, "revoke"])))


@settings(deadline=None)
@given(CHANGES, CHANGES)
def test_columns_hold_exactly_the_grants_in_force(loaded, changed):
    table = GrantTable()
    table.load(
        [
            Grant(source=f"t/{source}", target=target, command=command)
            for source, target, command in dict.fromkeys(change[:3] for change in loaded)
        ]
    )
    for source, target, command, what in changed:
        if what == "revoke":
            table.revoke(f"t/{source}", target, command)
        else:
            table.put(Grant(source=f"t/{source}", target=target, command=command, sensitivity=what))
    found = table.columns()
    copy = GrantTable()
    copy.load_columns(found.sources, found.pairs, found.source_ids, found.pair_ids, found.codes, {})
    for source in "abc":
        assert copy.of_source(f"t/{source}") == sorted(table.of_source(f"t/{source}"))
        for target in "abc":
            for command in "abc":
                asked = (f"t/{source}", target, command, 0.0, Sensitivity.MODERATE)
                assert copy.find(*asked) == table.find(*asked)
