"""Measure everything that is promised, beside its floor and its alternatives: `make bench`.

One table on the terminal, one JSON file. Figures of one run are to be compared with each other, not with those of
another machine or another hour: that is why everything that is compared takes turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Where the tests keep what drives a live platform.
sys.path.append(str(ROOT / "tests" / "support"))

import cold_start  # noqa: E402 - see above
import decisions  # noqa: E402
import dispatch  # noqa: E402
import embedded  # noqa: E402
import growth  # noqa: E402
import memory  # noqa: E402
import tails  # noqa: E402
from figures import FULL, TINY  # noqa: E402
from report import Run, machine, show, write  # noqa: E402

SECTIONS = {
    "decisions": decisions.measure,
    "tails": tails.measure,
    "dispatch": dispatch.measure,
    "growth": growth.measure,
    "registry": cold_start.measure,
    "memory": memory.measure,
    "embedded": embedded.measure,
}


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="only these")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build" / "bench.json", help="where the figures go"
    )
    parser.add_argument("--tiny", action="store_true", help="only see that it runs: the figures mean nothing")
    arguments = parser.parse_args()
    load, started = os.getloadavg(), time.monotonic()
    rows = []
    for name in arguments.sections or SECTIONS:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += SECTIONS[name](TINY if arguments.tiny else FULL)
    run = Run(machine(load, time.monotonic() - started), rows)
    show(run.rows)
    write(run, arguments.json)


if __name__ == "__main__":
    main()
