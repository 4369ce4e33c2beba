"""One Spark session for all tests: starting it costs more than most of them."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace

import pyspark.util
import pytest

from snavio.spark.session import open_session


class _ClosedWhenCollected(socket.socket):
    """PySpark leaves its result sockets to the garbage collector, which under `-W error` would be a failure."""

    def __del__(self):
        self.close()


@pytest.fixture(scope="session")
def spark():
    pyspark.util.socket = SimpleNamespace(**vars(socket) | {"socket": _ClosedWhenCollected})
    # Workers inherit the environment of the moment the JVM starts.
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    quick = {
        "spark.sql.shuffle.partitions": "2",
        # Frames this small are done before the second compiler has warmed up.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    session = open_session("snavio-tests", master="local[2]", memory="1g", more=quick)
    yield session
    session.stop()
