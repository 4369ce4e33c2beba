"""Latency histograms with logarithmic buckets: sums of counts by bucket, so any two merge by adding.

Every bucket but the last stands for a value within 5 % of each latency in it, whatever the magnitude. Latencies up to a
tenth of a millisecond share bucket 0; anything past the last bound (months) is counted in the last bucket.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RELATIVE_ERROR = 0.05
GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
"""Each bucket's upper bound over its lower one."""
SMALLEST_MS = 0.1
"""Upper bound of bucket 0."""
LAST_BUCKET = 255

_PER_LOG = 1 / math.log(GAMMA)
_LARGEST_MS = SMALLEST_MS * GAMMA**LAST_BUCKET


def latency_bucket(ms: float) -> int:
    """The bucket of a latency. Total: a negative or undefined one (clocks step) counts as the smallest."""
    if not ms > SMALLEST_MS:
        return 0
    if ms >= _LARGEST_MS:
        return LAST_BUCKET
    return min(math.ceil(math.log(ms / SMALLEST_MS) * _PER_LOG), LAST_BUCKET)


def bucket_bounds(bucket: int) -> tuple[float, float]:
    """Latencies of a bucket are above the first and at most the second, in milliseconds."""
    low = SMALLEST_MS * GAMMA ** (bucket - 1) if bucket else 0.0
    return low, SMALLEST_MS * GAMMA**bucket if bucket < LAST_BUCKET else math.inf


def bucket_value(bucket: int) -> float:
    """The latency a bucket stands for: within `RELATIVE_ERROR` of all of its members."""
    return SMALLEST_MS * 2 * GAMMA**bucket / (GAMMA + 1)


def percentile(counts: Mapping[int, int], quantile: float) -> float | None:
    """The latency below which this part of the counted lies, to the relative error; None when nothing was counted."""
    total = sum(counts.values())
    if total <= 0:
        return None
    rank = max(1, math.ceil(quantile * total))
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            return bucket_value(bucket)
    raise AssertionError("the ranks of a histogram end at its total")
