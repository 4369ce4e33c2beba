"""What `make bench-spark` holds, it holds."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BENCH = runpy.run_path(str(Path(__file__).parents[1] / "bench" / "bench_spark.py"))


@pytest.mark.parametrize(
    ("ratio", "rollup", "audit", "faults"),
    [(1.5, 1.25, 1.25, 0), (1.51, 1.0, 0.5, 1), (1.0, 1.26, 0.5, 1), (1.0, 1.0, 1.26, 1), (2.0, 2.0, 2.0, 3)],
)
def test_a_bench_fails_when_the_ratio_or_the_time_a_row_grows_too_large(ratio, rollup, audit, faults):
    cost = BENCH["Cost"](ratio, ratio)
    size = BENCH["Size"](1, {}, {"rollup": cost}, 0)
    found = BENCH["broken"](size, {"bare": 9.0, "rollup": rollup, "audit": audit})
    assert len(found) == faults
