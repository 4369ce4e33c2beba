"""What EMR Serverless starts: `audit …` or `report …`, as on a laptop."""
# ruff: noqa: INP001 - a script, not a package

from __future__ import annotations

import sys

from snavio.spark.cli import main

# EMR records a job as failed by this alone.
sys.exit(main(sys.argv[1:]))
