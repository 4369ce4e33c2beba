# ruff: noqa: ANN001, ANN003, ANN201, ANN204, D103, S301, S603 - a script
"""Cold start from a snapshot: a million grants and 50,000 routes, in a process of its own.

`python libs/registry/bench/bench_snapshot.py` prints one JSON line: seconds from the first byte asked for to a registry
in use, megabytes over an idle worker, and the sizes of the parts. Objects and tables are in memory: what is measured is
checking, inflating, parsing and building, not S3.
"""

import asyncio
import gc
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.tables import MemoryTables
from snavio.domain.freshness import TtlPolicy
from snavio.domain.models import RateLimit, Route, Sensitivity
from snavio.registry.keeper import Keeper
from snavio.registry.snapshot_publisher import SnapshotPublisher
from snavio.registry.snapshots import SnapshotPolicy, SnapshotReader
from snavio.registry.view import Registry
from snavio.wire.names import Names

GRANTS, ROUTES, SOURCES = 1_000_000, 50_000, 20_000
NAMES = Names()


class Signer:
    """A key of the bench's own in the place of KMS."""

    def __init__(self, private, public):
        self._private = private
        self._public = public

    async def public_key(self):
        return self._public

    async def sign(self, digest):
        return self._private.sign(digest, ec.ECDSA(Prehashed(SHA256())))


class Silent:
    """Observes nothing but refusals, which would make the figures worthless."""

    def loaded(self, **facts):
        if not facts["from_snapshot"]:
            raise SystemExit("the snapshot was not used")

    def refreshed(self, **facts):
        pass

    def refresh_failed(self, error):
        raise error

    def snapshot_loaded(self, pointer):
        pass

    def snapshot_refused(self, kind, reason, detail):
        raise SystemExit(f"{kind}: {reason}: {detail}")


def tables():
    made = MemoryTables(time.time)
    made.create(NAMES.registry, key=("pk", "sk"))
    made.create(NAMES.changelog, key=("pk", "seq"))
    return made


def full_registry():
    registry = Registry(TtlPolicy(), None)
    pairs = [(f"target-{number // 10}", f"command-{number % 10}") for number in range(ROUTES)]
    for number, (target, command) in enumerate(pairs):
        registry.put(
            Route(
                target=target,
                command=command,
                tenant=f"tenant-{number % 500}",
                queue_arn=f"arn:aws:sqs:us-east-1:{number % 500:012d}:{target}",
                dlq_arn=f"arn:aws:sqs:us-east-1:{number % 500:012d}:{target}-dlq",
                version=number % 7 + 1,
                rate_limit=RateLimit(limit=100) if number % 2 else None,
                sensitivity=Sensitivity.LOW if number % 3 else Sensitivity.CRITICAL,
            )
        )
    chance = np.random.default_rng(7)
    keys = chance.choice(SOURCES * ROUTES, size=GRANTS, replace=False)
    registry.grants.load_columns(
        [f"tenant-{number % 500}/service-{number}" for number in range(SOURCES)],
        pairs,
        (keys // ROUTES).astype(np.uint32),
        (keys % ROUTES).astype(np.uint32),
        chance.integers(0, 4, GRANTS).astype(np.uint8),
        {},
    )
    return registry


async def publish(path):
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    objects = MemoryObjects(NAMES.bucket)
    publisher = SnapshotPublisher(
        objects,
        tables(),
        NAMES,
        Signer(private, public),
        ttls=TtlPolicy(),
        max_bytes=SnapshotPolicy().max_bytes,
        keep_seconds=600,
        clock=time.time,
    )
    started = time.perf_counter()
    await publisher.publish(full_registry())
    path.write_bytes(pickle.dumps((public, objects.buckets)))
    return time.perf_counter() - started


def megabytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def load(path):
    public, buckets = pickle.loads(path.read_bytes())
    objects = MemoryObjects()
    objects.buckets = buckets
    held = tables()
    reader = SnapshotReader(
        objects,
        held,
        NAMES,
        Signer(None, public),
        SnapshotPolicy(),
        clock=time.time,
        observer=Silent(),
    )
    keeper = Keeper(held, NAMES, None, ttls=TtlPolicy(), clock=time.time, observer=Silent(), snapshots=reader)
    sizes = {
        key.split("/")[2]: len(o.body) for key, o in buckets[NAMES.bucket].items() if "latest" not in key
    }
    gc.collect()
    idle, started = megabytes(), time.perf_counter()
    await keeper.load()
    seconds = time.perf_counter() - started
    gc.collect()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {
        "grants": len(keeper.registry.grants),
        "routes": len(keeper.registry.routes),
        "seconds": round(seconds, 3),
        "megabytes_over_idle": round(megabytes() - idle, 1),
        "peak_over_idle": round(peak - idle, 1),
        "part_bytes": sizes,
    }
    print(json.dumps(found))


def main():
    if len(sys.argv) > 1:
        asyncio.run(load(Path(sys.argv[1])))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        seconds = asyncio.run(publish(path))
        print(json.dumps({"publish_seconds": round(seconds, 3)}))
        subprocess.run([sys.executable, __file__, str(path)], check=True)


if __name__ == "__main__":
    main()
