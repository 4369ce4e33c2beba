"""The simulator itself: it repeats exactly, it finds what was planted, and what is not planted it does not find."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from simulation import run, virtual_loop
from simulation.__main__ import main
from simulation.mutants import MUTANTS
from simulation.promises import PROMISES
from simulation.run import SIMULATOR_FAILED, judge, told

from snavio.wire.signing import SigningKey

TESTS = Path(__file__).parents[1]
FIRST, SEEDS = 10_000, 200
DIGESTS = "from simulation.run import judge; print([judge(seed).digest for seed in (3, 14, 15)])"


def test_every_promise_is_kept_by_seeds_nobody_chose():
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        verdicts = pool.map(judge, range(FIRST, FIRST + SEEDS), chunksize=5)
        broken = [told(verdict) for verdict in verdicts if verdict.violations]
    assert not broken, broken[0]


def test_the_same_seed_is_the_same_run_whatever_the_process_and_its_hash_seed():
    runs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'support'}", "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert runs[0] == runs[1] == f"{[judge(seed).digest for seed in (3, 14, 15)]}\n"


def test_different_seeds_are_different_runs():
    assert len({judge(seed).digest for seed in range(5)}) == 5


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_found_by_its_seed(name):
    mutant = MUTANTS[name]
    assert mutant.promise in judge(mutant.seed, mutant=name).broken


@pytest.mark.parametrize("seed", sorted({mutant.seed for mutant in MUTANTS.values()}))
def test_the_seeds_of_planted_faults_break_nothing_by_themselves(seed):
    assert judge(seed).violations == []


def test_every_promise_has_a_fault_that_breaks_it():
    assert PROMISES.keys() == {mutant.promise for mutant in MUTANTS.values()}


def test_looking_for_a_seed_of_a_fault_that_none_shows_fails(monkeypatch, capsys):
    monkeypatch.setitem(
        MUTANTS, "harmless", replace(MUTANTS["signature-unchecked"], stand_in=SigningKey.verify)
    )
    assert main(["--find-mutants", "1", "--mutant", "harmless", "--jobs", "1"]) == 1
    assert "survives" in capsys.readouterr().out


def test_a_failing_seed_says_what_broke_and_how_to_replay_it(capsys):
    mutant = MUTANTS["signature-unchecked"]
    assert main(["--seed", str(mutant.seed), "--mutant", mutant.name]) == 1
    said = capsys.readouterr().out
    assert f"make simulate SEED={mutant.seed} MUTANT=signature-unchecked" in said
    assert mutant.promise in said
    assert main(["--seed", str(mutant.seed)]) == 0


def test_a_planted_fault_is_planted_in_many_seeds_as_well(capsys):
    mutant = MUTANTS["signature-unchecked"]
    seeds = ["--first", str(mutant.seed), "--seeds", "1", "--jobs", "1"]
    assert main([*seeds, "--mutant", mutant.name]) == 1
    assert f"make simulate SEED={mutant.seed} MUTANT=signature-unchecked" in capsys.readouterr().out
    assert main(seeds) == 0


def test_a_seed_whose_run_raises_says_so_itself(monkeypatch):
    def raising(_seed, happened):
        happened.append((1.0, "slow-4", "queues.send", "somewhere", ""))
        raise LookupError("no such thing")

    monkeypatch.setattr(run, "simulate", raising)
    said = told(judge(7))
    assert SIMULATOR_FAILED in said
    assert "LookupError: no such thing" in said
    assert "slow-4" in said
    assert "in raising" in said
    assert "make simulate SEED=7" in said


def test_a_seed_whose_checker_raises_says_so_itself(monkeypatch):
    def raising(_history):
        raise LookupError("no such thing")

    monkeypatch.setattr(run, "check", raising)
    assert judge(7).broken == [SIMULATOR_FAILED]


def test_a_run_without_an_end_is_ended_and_says_so(monkeypatch):
    monkeypatch.setattr(virtual_loop, "MOST_TURNS", 500)
    [violation] = judge(7).violations
    assert violation.promise == SIMULATOR_FAILED
    assert "went round 500 times" in violation.what


def test_a_run_that_never_gives_way_is_ended_and_says_so(monkeypatch):
    def looping(_seed, _happened):
        while True:
            pass

    monkeypatch.setattr(run, "simulate", looping)
    monkeypatch.setattr(run, "MOST_SECONDS", 0.1)
    [violation] = judge(7).violations
    assert violation.promise == SIMULATOR_FAILED
    assert "more than 0.1 s" in violation.what


def test_the_page_lists_every_promise_and_no_other():
    page = (TESTS.parent / "docs/howto/simulate.md").read_text()
    table = page.partition("| promise | |\n|---|---|\n")[2].partition("\n\n")[0]
    assert [row.split(" | ")[0] for row in table.splitlines()] == [f"| {promise}" for promise in PROMISES]


def test_the_page_lists_every_planted_fault_with_its_seed():
    page = (TESTS.parent / "docs/howto/simulate.md").read_text()
    for mutant in MUTANTS.values():
        assert f"| `{mutant.name}` | {mutant.fault} | {mutant.promise} | {mutant.seed} |" in page
    assert page.count("\n| `") == len(MUTANTS)
