"""Every fault planted on purpose, each with a seed whose run shows it: what the simulator is able to see.

`seed` is the run in which the promise it names is broken; without the mutant the same run breaks none.
`python -m simulation --find-mutants` looks for seeds anew.
"""

from __future__ import annotations

from simulation import handling_mutants, planting, ruling_mutants

PLANTED_IN = (handling_mutants, ruling_mutants)
MUTANTS = planting.MUTANTS
"""They are there once the modules that plant them are."""
