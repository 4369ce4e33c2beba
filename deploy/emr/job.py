"""What EMR Serverless starts: `audit …` or `report …`, as on a laptop."""
# ruff: noqa: INP001 - a script, not a package

from __future__ import annotations

import sys

from snavio.spark.cli import main

main(sys.argv[1:])
