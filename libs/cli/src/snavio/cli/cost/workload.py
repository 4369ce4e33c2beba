"""The load a bill is for: how many commands, by which paths, how large, for how many tenants."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from snavio.aws.errors import SnavioError

_SUM_TOLERANCE = 1e-6
MAX_BATCH = 10
ROUND_TRIP_SECONDS = 0.02
"""What a call to SQS takes, and so how long a poll is busy with one batch before it asks for the next."""


class Path(StrEnum):
    """What becomes of a command, as far as it makes a difference to its cost."""

    INVALID = "invalid"
    """Refused by shield."""
    FAST = "fast"
    """Delivered by fast."""
    LIMITED = "limited"
    """Delivered by fast with a unit of a lease."""
    SLOW = "slow"
    """Delivered by slow."""
    STRICT = "strict"
    """Delivered by slow, once: claimed and committed."""
    CLAIM_CHECK = "claim-check"
    """Delivered by slow, with its payload left in S3."""
    REJECTED = "rejected"
    """Refused by slow."""


Mix = dict[Path, float]
TYPICAL: Mix = {Path.FAST: 0.9, Path.STRICT: 0.05, Path.SLOW: 0.03, Path.INVALID: 0.02}


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What a bill is for."""

    rate: float
    """Commands a second, on average."""
    mix: Mix
    payload_bytes: int = 1024
    claim_bytes: int = 300_000
    """The payload of a command that goes by claim check."""
    batch: float | None = None
    """Messages in a batch, on average; from the rate when not given."""
    targets: int = 10
    """Target queues the commands of one moment are spread over."""
    tenants: int = 10
    routes: int = 50
    telemetry: bool = True
    audit: bool = True

    def fill(self, per_second: float, polls: float) -> float:
        """Messages in a batch of a queue: what comes while its polls are busy, one at least and ten at most."""
        if self.batch is not None:
            return self.batch
        return min(MAX_BATCH, max(1.0, per_second * ROUND_TRIP_SECONDS / polls))

    def payload(self, path: Path) -> int:
        """Bytes of payload of a command on a path."""
        return self.claim_bytes if path is Path.CLAIM_CHECK else self.payload_bytes

    def share(self, *paths: Path) -> float:
        """The part of all commands that takes one of these paths."""
        return math.fsum(self.mix.get(path, 0.0) for path in paths)


def parse_mix(text: str) -> Mix:
    """`fast=0.9,strict=0.1` as a mix. Raises `SnavioError` saying what is wrong with it."""
    mix: Mix = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = part.partition("=")
        known = ", ".join(Path)
        if name.strip() not in list(Path):
            raise SnavioError(f"{name.strip()!r} is no path: there are {known}.")
        path = Path(name.strip())
        try:
            share = float(number) if equals else math.nan
        except ValueError:
            share = math.nan
        if not 0.0 <= share <= 1.0:
            raise SnavioError(
                f"{part!r} does not say which part of the commands: write {path}=0.25 for a quarter."
            )
        if path in mix:
            raise SnavioError(f"{path} stands twice in the mix.")
        mix[path] = share
    total = math.fsum(mix.values())
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise SnavioError(
            f"The parts of the mix make {total:g}, not 1: every command takes exactly one path."
        )
    return mix
