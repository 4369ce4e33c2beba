"""Processes under measurement: started, told what to do, and asked what they cost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from stock import NAMES, Stock

HERE = Path(__file__).parent
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
_TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_SECONDS = 60.0


class Process:
    """A child and its CPU time."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SNAVIO_"))}
        self.popen = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, *arguments],
            env={**kept, **CREDENTIALS, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def line(self) -> str:
        """The next line it prints."""
        return self.popen.stdout.readline().decode().strip() if self.popen.stdout else ""

    def cpu_seconds(self) -> float:
        """What it has used so far."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def megabytes(self) -> float:
        """What it holds in memory."""
        lines = Path(f"/proc/{self.popen.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def stop(self) -> None:
        """End it."""
        self.popen.kill()
        self.popen.communicate()


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What a canned endpoint has been asked for so far, and what that has cost it."""

    received: int = 0
    sent: int = 0
    deleted: int = 0
    recorded: int = 0
    escalated: int = 0
    renewed: int = 0
    refreshes: int = 0
    calls: int = 0
    cpu: float
    at: float


class Canned:
    """A canned endpoint."""

    def __init__(self, process: Process, port: str) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"

    def queue_url(self, name: str) -> str:
        """The address of any queue."""
        return f"{self.url}/{NAMES.account}/{name}"

    def ask(self, *path: object, answer: type[Any] = Counts) -> Any:
        """Tell it something, or ask it for figures."""
        address = "/".join([self.url, "control", *map(str, path)])
        with urllib.request.urlopen(address) as reply:  # noqa: S310 - our own endpoint
            return msgspec.json.decode(reply.read(), type=answer)

    def await_poll(self, queue: str) -> None:
        """Return once somebody waits for messages of a queue: a worker, once it has refreshed its registry too."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (self.ask("polls", queue, answer=int) and self._is_warm(queue)):
            if time.monotonic() > deadline:
                raise SystemExit(f"nobody came to poll {queue}")
            time.sleep(0.02)

    def _is_warm(self, queue: str) -> bool:
        # The first read of the changelog ends the loading, the second comes when all is in place.
        return queue != NAMES.fast or self.ask("counts").refreshes > 1


@contextmanager
def canned_endpoint(stock: Stock) -> Iterator[Canned]:
    """An endpoint with this stock, while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stock"
        path.write_bytes(msgspec.msgpack.encode(stock))
        process = Process(str(HERE / "canned.py"), str(path))
        try:
            yield Canned(process, process.line())
        finally:
            process.stop()


def fast_worker(endpoint: Canned, **variables: str) -> Process:
    """The real thing: `python -m snavio.fast` on this endpoint."""
    return Process(
        "-m",
        "snavio.fast",
        AWS_ENDPOINT_URL=endpoint.url,
        AWS_REGION=NAMES.region,
        SNAVIO_LOG_LEVEL="warning",
        **variables,
    )


def forwarder(kind: str, endpoint: Canned, queue: str) -> Process:
    """A bare forwarder on a queue of its own, on this endpoint."""
    target = endpoint.queue_url("commands-0")
    return Process(str(HERE / "forwarders.py"), kind, endpoint.url, endpoint.queue_url(queue), target)
