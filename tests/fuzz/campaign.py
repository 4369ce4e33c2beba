"""Fuzz the ingress at length: `make fuzz`. Every input is a function of the seed and its number, so any can be made again."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from ingress_check import Escape, check, run
from ingress_mutations import make_case

_CHUNK = 10_000
_SHOWN = 20


def main() -> int:
    """Run the campaign, or one input of it again. The exit code is 1 when something escaped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--inputs", type=int, default=1_000_000, help="how many inputs (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one a core")
    parser.add_argument("--replay", type=int, metavar="NUMBER", help="make this one input again and show it")
    given = parser.parse_args()
    if given.replay is not None:
        return _replay(given.seed, given.replay)
    return _campaign(given.seed, given.inputs, given.processes)


def _campaign(seed: int, inputs: int, processes: int) -> int:
    print(f"ingress: {inputs:,} inputs, seed {seed}, {processes} processes", flush=True)
    outcomes: Counter[str] = Counter()
    escapes: list[tuple[int, str]] = []
    longest, done, began = 0.0, 0, time.perf_counter()
    chunks = [(seed, range(at, min(at + _CHUNK, inputs))) for at in range(0, inputs, _CHUNK)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for numbers, found in pool.imap_unordered(_work, chunks):
            outcomes += found[0]
            escapes += found[1]
            longest = max(longest, found[2])
            done += len(numbers)
            if done % (inputs // 10 or 1) < _CHUNK:
                print(
                    f"  {done:>10,}  {done / (time.perf_counter() - began):>8,.0f}/s  {len(escapes)} escapes",
                    flush=True,
                )
    seconds = time.perf_counter() - began
    print("\n| outcome | inputs |\n|---|--:|")
    for outcome, count in outcomes.most_common():
        print(f"| {outcome} | {count:,} |")
    print(f"| **escapes** | **{len(escapes)}** |")
    print(
        f"\n{inputs:,} inputs in {seconds:.1f} s, {inputs / seconds:,.0f}/s; the longest took {longest * 1000:.1f} ms"
    )
    for number, escape in sorted(escapes)[:_SHOWN]:
        print(f"--seed {seed} --replay {number}: {escape}")
    return 1 if escapes else 0


def _work(chunk: tuple[int, range]) -> tuple[range, tuple[Counter[str], list[tuple[int, str]], float]]:
    return chunk[1], run(*chunk)


def _replay(seed: int, number: int) -> int:
    case = make_case(seed, number)
    print(f"{case.kind}, {'must pass' if case.genuine else 'may be refused'}:\n{case.text}\n")
    try:
        print(check(case))
    except Escape as escape:
        print(f"ESCAPE: {escape}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
