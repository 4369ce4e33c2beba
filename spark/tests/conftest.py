"""One Spark session for all tests: starting it costs more than most of them."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace

import pyspark.util
import pytest

from snavio.spark.session import open_session

QUICK = {
    "spark.sql.shuffle.partitions": "2",
    # Frames this small are done before anything compiled for them would pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


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
    session = open_session("snavio-tests", master="local[2]", memory="1g", more=QUICK)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quick():
    """Settings for another session like this one, in another process."""
    return QUICK
