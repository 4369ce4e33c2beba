"""The Spark session: the same settings on a laptop, in tests and on EMR Serverless."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from snavio.spark.source import StatsCounts, StatsItems

if TYPE_CHECKING:
    from collections.abc import Mapping

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # A commit replaces the folders it wrote and no others.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.python.daemon.module": "snavio.spark.daemon",
    "spark.sql.adaptive.enabled": "true",
    # Rows of one task seldom share a key, a worker's never do: a small first map in front of the real one only costs.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # A commit writes a few hours, each row where it belongs: no need to sort all of them by hour first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # An unfinished commit is invisible, so its success marker would say nothing.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
}
# Nobody waits for single answers: the collector that costs least in all.
_JAVA = "-XX:+UseParallelGC"
_QUIET_CONFIGURATION = Path(__file__).with_name("quiet.properties").as_uri()
_LOGGING = {"spark.log.level": "ERROR", "spark.driver.extraJavaOptions": _JAVA}
_QUIET = {"spark.driver.extraJavaOptions": f"{_JAVA} -Dlog4j2.configurationFile={_QUIET_CONFIGURATION}"}


def open_session(
    name: str = "snavio",
    *,
    master: str | None = None,
    memory: str = "2g",
    more: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> SparkSession:
    """A session with the data sources registered. Without a master, the one `spark-submit` chose, which logs as it likes."""
    builder = SparkSession.Builder().appName(name)
    settings = dict(_SETTINGS)
    if master is not None:
        # Workers must run the interpreter that has this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings |= _LOCAL | (_QUIET if quiet else _LOGGING) | {"spark.driver.memory": memory}
        builder = builder.master(master)
    for key, value in (settings | dict(more or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for source in (StatsItems, StatsCounts):
        spark.dataSource.register(source)
    return spark


def size_shuffles(spark: SparkSession, rows: int, *, rows_a_task: int = 500_000) -> int:
    """Choose how many partitions a shuffle of so many rows gets: enough to stay in memory, no more than pay."""
    cores = spark.sparkContext.defaultParallelism
    chosen = max(cores, min(-(-rows // rows_a_task), 2_000))
    spark.conf.set("spark.sql.shuffle.partitions", str(chosen))
    return chosen
