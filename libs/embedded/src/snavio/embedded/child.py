"""Runs a module as `python -m` would, in a process that ends with its parent.

`python -m snavio.embedded.child snavio.shield`, with a pipe from the parent as standard input.
"""

from __future__ import annotations

import runpy
import sys

from snavio.embedded import lifeline

_GRACE_SECONDS = 3.0

if __name__ == "__main__":
    module = sys.argv.pop(1)
    lifeline.hold(grace_seconds=_GRACE_SECONDS)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
