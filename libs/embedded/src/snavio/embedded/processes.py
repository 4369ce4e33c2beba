"""One child process: started, listened to, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from snavio.embedded.console import Console

if TYPE_CHECKING:
    from asyncio import StreamReader

_LINE_LIMIT = 1 << 20


class Child:
    """A process whose output goes to the console and which ends with this one."""

    def __init__(self, name: str, process: Process, relay: asyncio.Task[None]) -> None:
        self.name = name
        self._process = process
        self._relay = relay

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait(self) -> int:
        """Its exit code, once it has ended and all it wrote has been shown."""
        code = await self._process.wait()
        # Not awaited itself: whoever stops waiting must not silence the process.
        await asyncio.wait({self._relay})
        return code

    async def first_line(self) -> bytes:
        """The first line on its standard output, or nothing when it ended without one."""
        return await self._process.stdout.readline() if self._process.stdout else b""

    async def stop(self, *, grace_seconds: float, hurry: asyncio.Event) -> None:
        """Ask it to end; kill it when the grace has passed, or as soon as there is a hurry."""
        ended = asyncio.ensure_future(self.wait())
        hurried = asyncio.ensure_future(hurry.wait())
        try:
            self._signal(signal.SIGTERM)
            await asyncio.wait({ended, hurried}, timeout=grace_seconds, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                self._signal(signal.SIGKILL)
            await ended
        finally:
            hurried.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


async def start(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    console: Console,
    *,
    speaks: bool = False,
) -> Child:
    """Start a process. All it writes is relayed, except the standard output of one that `speaks` to us.

    It has a session of its own, so that a Ctrl-C in the terminal reaches it only through an orderly stop.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE if speaks else STDOUT,
        start_new_session=True,
        limit=_LINE_LIMIT,
    )
    stream = process.stderr if speaks else process.stdout
    return Child(name, process, asyncio.create_task(_relay(name, stream, console)))


async def _relay(name: str, stream: StreamReader | None, console: Console) -> None:
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:
            console.relay(name, "(a line too long to show)")
            continue
        if not line:
            return
        console.relay(name, line.decode(errors="replace").rstrip("\n"))
