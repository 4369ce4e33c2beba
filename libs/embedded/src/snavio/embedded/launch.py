"""Starting the embedded AWS from another program, and stopping it with that program."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from snavio.embedded.errors import CannotStart

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_STOP_SECONDS = 30.0


class Ready(msgspec.Struct, frozen=True):
    """The line the embedded AWS prints once it serves."""

    aws_endpoint_url: str


@contextmanager
def embedded_aws(data_dir: Path, *, port: int = 0) -> Generator[str]:
    """Serve an embedded AWS while the block runs; gives its endpoint URL. State stays in the directory."""
    command = [
        sys.executable,
        "-m",
        "snavio.embedded.aws",
        "--lifeline",
        "--port",
        str(port),
        "--data-dir",
        str(data_dir),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own module
        try:
            # It either prints its line or ends, which closes the pipe.
            line = process.stdout.readline() if process.stdout else b""
            if not line:
                raise CannotStart(f"The embedded AWS ended with code {process.wait()} before it was ready.")
            yield msgspec.json.decode(line, type=Ready).aws_endpoint_url
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
