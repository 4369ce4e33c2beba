"""The API as an intake of a worker: it listens until the worker drains, then finishes what it has begun."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import uvicorn

_BACKLOG = 1024
_KEEP_ALIVE_SECONDS = 75
_MOST_CONNECTIONS = 1000
_MOST_HEAD_BYTES = 32_768


class HttpStatus(msgspec.Struct, frozen=True):
    """What the server is doing."""

    port: int
    connections: int
    requests: int


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the worker, which decides when to stop."""
        yield


class HttpIntake:
    """An ASGI application on a port."""

    name = "http"

    def __init__(self, app: Any, *, host: str, port: int) -> None:
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                http="httptools",
                ws="none",
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                limit_concurrency=_MOST_CONNECTIONS,
                h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
            )
        )

    async def run(self) -> None:
        """Serve until drained."""
        await self._server.serve(sockets=[self._socket])

    def drain(self, seconds: float) -> None:
        """Take no more connections; answer what was asked within so many seconds."""
        self._server.config.timeout_graceful_shutdown = max(1, int(seconds))
        self._server.should_exit = True

    def status(self) -> HttpStatus:
        """What the server is doing."""
        state = self._server.server_state
        return HttpStatus(self.port, len(state.connections), state.total_requests)

    def ailment(self) -> str | None:
        """Nothing the server does calls for a restart."""
        return None


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
