"""`python -m snavio.spark audit|report …`."""

from __future__ import annotations

import sys

from snavio.spark.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
