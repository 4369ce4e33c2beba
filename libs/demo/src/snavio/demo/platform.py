"""The platform under demonstration: `snavio up` as a process of its own, in a folder that is thrown away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

_START_SECONDS = 90
_STOP_SECONDS = 40
# What a killed worker had in hand comes back this soon: somebody is watching.
_SETTINGS = {"SNAVIO_VISIBILITY_SECONDS": "10"}


class DemoFailedError(Exception):
    """The demonstration could not be given; the message says why, in one sentence."""


class Platform(msgspec.Struct, frozen=True):
    """Where a running platform is, and its operator's token."""

    aws_endpoint_url: str
    http_url: str
    admin_token: str


class Running:
    """A platform that is up."""

    def __init__(self, platform: Platform, process: Process, log: Path) -> None:
        self.platform = platform
        self.log = log
        self._process = process

    def pid_of(self, service: str) -> int | None:
        """The process id of a service, found by its command line among this platform's children."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, IndexError, ValueError):
                continue
            if parent == self._process.pid and f"snavio.{service}".encode() in command:
                return int(entry.name)
        return None

    def kill(self, service: str) -> bool:
        """Kill a service in the middle of its work; whether there was one to kill."""
        pid = self.pid_of(service)
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        return True


@asynccontextmanager
async def running_platform(folder: Path) -> AsyncGenerator[Running]:
    """Start the platform, and stop it in order at the end."""
    log = folder / "platform.log"
    arguments = ["up", "--port-aws", "0", "--port-http", "0", "--data-dir", str(folder / "data")]
    code = "from snavio.cli.main import main; main()"
    async with await anyio.open_file(log, "wb") as stderr:
        process = await anyio.open_process(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr.wrapped,
            env=_SETTINGS | os.environ,
        )
    async with process:
        try:
            yield Running(await _announcement(process, log), process, log)
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.send_signal(signal.SIGTERM)
                with anyio.move_on_after(_STOP_SECONDS):
                    await process.wait()
                if process.returncode is None:
                    process.kill()


async def _announcement(process: Process, log: Path) -> Platform:
    if process.stdout is None:
        raise DemoFailedError("The platform has no standard output to announce itself on.")
    try:
        with anyio.fail_after(_START_SECONDS):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 65_536)
        return msgspec.json.decode(line, type=Platform)
    except (TimeoutError, anyio.IncompleteRead, anyio.EndOfStream, msgspec.MsgspecError) as problem:
        lines = (await anyio.Path(log).read_text(errors="replace")).strip().splitlines()
        reason = lines[-1] if lines else str(problem)
        raise DemoFailedError(f"The platform did not start: {reason}") from problem
