"""Spark's Python daemon, made quick to serve many small tasks; `spark.python.daemon.module` names it.

Before each task a worker calls `importlib.invalidate_caches`, and on Python 3.11 that reads the index of `pyspark.zip`
again: a quarter of a second, where a task of ours is one query of a few milliseconds. The archives on a worker's path
never change while it runs. What the data sources import is loaded before workers are forked, so each starts with it.
"""

from __future__ import annotations

import zipimport
from importlib import import_module

import pyspark.daemon


def _keep(self: zipimport.zipimporter) -> None:
    """What an archive held, it holds."""


if __name__ == "__main__":
    zipimport.zipimporter.invalidate_caches = _keep
    import_module("snavio.spark.source")
    pyspark.daemon.manager()
