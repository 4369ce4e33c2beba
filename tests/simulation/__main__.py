"""Simulate the platform, seed after seed: `make simulate`."""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from simulation.mutants import MUTANTS
from simulation.run import Verdict, judge, told

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES = """
examples:
  make simulate                     for the night: random seeds until Ctrl-C or a broken promise
  make simulate SEEDS=1000          a thousand seeds, then a table
  make simulate SEED=1234           one seed, exactly as it ran before
  make simulate SEED=1234 TRACE=1   … with everything that happened
  make simulate SEED=3 MUTANT=signature-unchecked
                                    … with a fault planted on purpose
  make simulate SEEDS=100 MUTANT=signature-unchecked
                                    … until a seed finds it
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "simulate", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--seeds", type=int, help="run so many seeds; without, run until Ctrl-C")
    parser.add_argument("--first", type=int, help="the first of them; 0 unless run without an end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a broken promise")
    parser.add_argument("--trace", action="store_true", help="with --seed: print everything that happened")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="plant this fault")
    parser.add_argument(
        "--find-mutants", type=int, metavar="SEEDS", help="the first seed that catches each mutant"
    )
    options = parser.parse_args(arguments)
    if options.find_mutants:
        names = [options.mutant] if options.mutant else list(MUTANTS)
        return _find_mutants(names, options.find_mutants, options.jobs)
    if options.seed is not None:
        return _one(options.seed, options.mutant, trace=options.trace)
    endless = options.seeds is None
    first = options.first if options.first is not None else int(time.time()) * 1000 if endless else 0
    seeds = itertools.count(first) if endless else range(first, first + options.seeds)
    return _many(
        seeds, options.jobs, total=options.seeds, keep_going=options.keep_going, mutant=options.mutant
    )


def _one(seed: int, mutant: str | None, *, trace: bool) -> int:
    verdict = judge(seed, mutant=mutant, whole=trace)
    if trace:
        print("\n".join(verdict.trace))
    if verdict.violations:
        print(told(verdict, mutant))
        return 1
    print(
        f"seed {seed} keeps every promise: {verdict.commands} commands, {verdict.deliveries} deliveries, "
        f"{verdict.crashes} crashes; trace {verdict.digest[:16]}"
    )
    return 0


def _many(seeds: Iterable[int], jobs: int, *, total: int | None, keep_going: bool, mutant: str | None) -> int:
    began = shown = time.monotonic()
    sums: Counter[str] = Counter()
    broken: dict[str, list[int]] = {}
    with multiprocessing.Pool(jobs, gc.freeze, maxtasksperchild=500) as pool:
        try:
            for verdict in pool.imap_unordered(partial(judge, mutant=mutant), seeds, chunksize=4):
                _count(sums, verdict)
                for promise in verdict.broken:
                    broken.setdefault(promise, []).append(verdict.seed)
                if verdict.violations and (not keep_going or len(broken) == 1):
                    print(f"\n{told(verdict, mutant)}\n")
                    if not keep_going:
                        break
                if time.monotonic() - shown > 1:
                    shown = time.monotonic()
                    print(f"\r{_progress(sums, shown - began, total)}", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(file=sys.stderr)
        pool.terminate()
    print(f"\n{_progress(sums, time.monotonic() - began, total)}")
    print(
        f"{sums['commands']} commands, {sums['deliveries']} deliveries, {sums['crashes']} crashes; "
        f"{sum(len(found) for found in broken.values())} promises broken"
    )
    for promise, found in sorted(broken.items()):
        print(f"  {promise:<36} {len(found):>6}  seeds {', '.join(map(str, sorted(found)[:8]))}")
    return 1 if broken else 0


def _count(sums: Counter[str], verdict: Verdict) -> None:
    sums["seeds"] += 1
    sums["commands"] += verdict.commands
    sums["deliveries"] += verdict.deliveries
    sums["crashes"] += verdict.crashes


def _progress(sums: Counter[str], seconds: float, total: int | None) -> str:
    of = f" of {total}" if total else ""
    return f"{sums['seeds']}{of} seeds in {seconds:.0f} s, {60 * sums['seeds'] / max(seconds, 0.001):.0f} a minute"


def _find_mutants(names: list[str], seeds: int, jobs: int) -> int:
    survivors = 0
    with multiprocessing.Pool(jobs, gc.freeze) as pool:
        for name, seed in pool.imap(_catching_seed, [(name, seeds) for name in names]):
            survivors += seed is None
            print(
                f"{name:<34} {MUTANTS[name].promise:<36} {seed if seed is not None else 'survives'}",
                flush=True,
            )
    return 1 if survivors else 0


def _catching_seed(asked: tuple[str, int]) -> tuple[str, int | None]:
    name, seeds = asked
    for seed in range(seeds):
        if MUTANTS[name].promise in judge(seed, mutant=name).broken:
            return name, seed
    return name, None


if __name__ == "__main__":
    sys.exit(main())
