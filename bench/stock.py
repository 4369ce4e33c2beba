"""What a canned endpoint holds: a registry of a given shape as a snapshot, and commands that registry lets through."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from samples import NAME, PAYLOAD

from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.tables import MemoryTables
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import Route, Sensitivity
from snavio.registry.snapshot_publisher import SnapshotPublisher
from snavio.registry.snapshots import SnapshotPolicy
from snavio.registry.view import Registry
from snavio.wire.canonical import canonical
from snavio.wire.commands import Admitted, encode
from snavio.wire.names import Names
from snavio.wire.times import format_time

NAMES = Names()
MARK = "c0ffee00"
"""The first part of every command id of the stock, by which it is found in whatever a worker sends on."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How large a registry is: every source has a grant for every route."""

    sources: int = 20
    routes: int = 50
    tenants: int = 20
    queues: int = 1
    """Target queues the routes lead to. Ten messages for one queue are one send, for ten queues ten."""
    commands: int = 2_000

    @property
    def grants(self) -> int:
        """How many there are."""
        return self.sources * self.routes

    def source(self, number: int) -> str:
        """The name of a source."""
        return f"tenant-{number % self.tenants}/service-{number}"


class Stock(msgspec.Struct, frozen=True):
    """Everything a canned endpoint answers with."""

    messages: list[bytes]
    """Each as ReceiveMessage has it."""
    objects: dict[str, bytes]
    public_key: bytes


class Signer:
    """A key of the bench's own in the place of KMS."""

    def __init__(self) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        self.public = self._private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    async def public_key(self) -> bytes:
        """As DER."""
        return self.public

    async def sign(self, digest: bytes) -> bytes:
        """As DER."""
        return self._private.sign(digest, ec.ECDSA(Prehashed(SHA256())))


def registry_of(shape: Shape) -> Registry:
    """A registry of this shape."""
    registry = Registry(TtlPolicy(), None)
    pairs = [(f"target-{number}", NAME) for number in range(shape.routes)]
    for number, (target, command) in enumerate(pairs):
        arn = NAMES.queue_arn(f"commands-{number % shape.queues}")
        registry.put(
            Route(target=target, command=command, tenant="owner", queue_arn=arn, sensitivity=Sensitivity.LOW)
        )
    numbers = np.arange(shape.grants)
    registry.grants.load_columns(
        [shape.source(number) for number in range(shape.sources)],
        pairs,
        (numbers % shape.sources).astype(np.uint32),
        (numbers // shape.sources).astype(np.uint32),
        np.zeros(shape.grants, dtype=np.uint8),
        {},
    )
    return registry


def changelog_tables() -> MemoryTables:
    """The registry's tables, empty."""
    tables = MemoryTables(time.time)
    tables.create(NAMES.registry, key=("pk", "sk"))
    tables.create(NAMES.changelog, key=("pk", "seq"))
    return tables


async def publish(registry: Registry, signer: Signer) -> MemoryObjects:
    """The registry as a signed snapshot."""
    objects = MemoryObjects(NAMES.bucket)
    publisher = SnapshotPublisher(
        objects,
        changelog_tables(),
        NAMES,
        signer,
        ttls=TtlPolicy(),
        max_bytes=SnapshotPolicy().max_bytes,
        keep_seconds=600,
        clock=time.time,
    )
    await publisher.publish(registry)
    return objects


async def stock_of(shape: Shape) -> Stock:
    """A registry, and commands spread over all of it."""
    signer = Signer()
    objects = await publish(registry_of(shape), signer)
    chance, taken = random.Random(7), Counter[int]()
    now = time.time()
    return Stock(
        messages=[_message(shape, number, chance, taken, now) for number in range(shape.commands)],
        objects={
            f"/{NAMES.bucket}/{key}": stored.body for key, stored in objects.buckets[NAMES.bucket].items()
        },
        public_key=signer.public,
    )


def _message(shape: Shape, number: int, chance: random.Random, taken: Counter[int], now: float) -> bytes:
    # Neighbours are for different queues wherever there are several.
    route = chance.randrange(shape.routes) // shape.queues * shape.queues + number % shape.queues
    route %= shape.routes
    # A route's sources take turns, so that every tenant has its own and none dominates: a ban would be measured too.
    source = shape.source((taken[route] * shape.routes + route) % shape.sources)
    taken[route] += 1
    command = Admitted(
        source=source,
        id=f"{MARK}-{str(uuid.UUID(int=number + 1))[9:]}",
        timestamp=format_time(now),
        target=f"target-{route}",
        name=NAME,
        received_at=now,
        payload=msgspec.Raw(canonical(PAYLOAD)),
    )
    return msgspec.json.encode(
        {
            "MessageId": str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))),
            "ReceiptHandle": f"{number:0180d}",
            "MD5OfBody": "0" * 32,
            "Body": encode(command),
            "Attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": str(int(now * 1000)),
                "MessageGroupId": source.partition("/")[0],
            },
        }
    )
