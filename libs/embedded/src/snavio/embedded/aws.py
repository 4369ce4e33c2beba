"""The embedded AWS, as a process: `python -m snavio.embedded.aws --port P --data-dir D`.

MiniStack on 127.0.0.1 with IAM enforced. When it can take requests it prints one JSON line,
`{"aws_endpoint_url": …}`, on standard output. SIGTERM or SIGINT saves its state in the data directory and ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve  # pyright: ignore[reportUnknownVariableType]
from hypercorn.config import Config

from snavio.embedded import lifeline, policy
from snavio.embedded.datadir import claimed
from snavio.embedded.errors import CannotStart
from snavio.embedded.ports import listen

_SAVE_GRACE_SECONDS = 20.0
_DRAIN_SECONDS = 1.0
"""How long requests in hand, long polls among them, may still take once it is told to stop."""


def main(argv: list[str] | None = None) -> int:
    """Run until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m snavio.embedded.aws", description="The embedded AWS.")
    parser.add_argument("--port", type=int, default=4566, help="port on 127.0.0.1; 0 for any free one")
    parser.add_argument("--data-dir", type=Path, required=True, help="where state is kept")
    parser.add_argument("--lifeline", action="store_true", help="stop when standard input closes")
    arguments = parser.parse_args(argv)
    if arguments.lifeline:
        lifeline.hold(grace_seconds=_SAVE_GRACE_SECONDS)
    try:
        with claimed(arguments.data_dir) as data_dir:
            listener = listen(arguments.port, what="the embedded AWS")
            _configure(data_dir)
            policy.install()
            asyncio.run(_serve(listener))
    except CannotStart as error:
        print(error, file=sys.stderr)  # noqa: T201 - the one sentence a person needs
        return 1
    return 0


def _configure(data_dir: Path) -> None:
    # MiniStack reads its settings when it is imported. Queue URLs are kept under one fixed port and rewritten to the
    # host of each request, so state saved on one port serves on another: GATEWAY_PORT is that name, not our port.
    os.environ.update(
        {
            "AUTH": "true",
            "GATEWAY_PORT": "4566",
            "PERSIST_STATE": "1",
            "S3_PERSIST": "1",
            "STATE_DIR": str(data_dir / "state"),
            "S3_DATA_DIR": str(data_dir / "s3"),
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),
        }
    )
    os.environ.pop("MINISTACK_HOST", None)


async def _serve(listener: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # Only now: it reads its settings when it is imported.
    from ministack.app import (  # noqa: PLC0415
        app as emulator,  # pyright: ignore[reportUnknownVariableType]
    )

    host, port = listener.getsockname()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def announce(message: Any) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                print(json.dumps({"aws_endpoint_url": f"http://{host}:{port}"}), flush=True)  # noqa: T201

        await emulator(scope, receive, announce if scope["type"] == "lifespan" else send)

    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = _DRAIN_SECONDS
    config.loglevel = "WARNING"
    logging.getLogger("hypercorn.error").setLevel(logging.ERROR)
    await serve(app, config, shutdown_trigger=stop.wait)


if __name__ == "__main__":
    sys.exit(main())
