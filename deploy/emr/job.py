"""What EMR Serverless starts: `audit …` or `report …`, as on a laptop."""

from __future__ import annotations

import sys

from snavio.spark.cli import main

main(sys.argv[1:])
