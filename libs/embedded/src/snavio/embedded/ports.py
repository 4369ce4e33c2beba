"""Ports on 127.0.0.1."""

from __future__ import annotations

import socket

from snavio.embedded.errors import CannotStart


def listen(port: int, *, what: str) -> socket.socket:
    """A listening socket on the port, or on any free one for 0; `CannotStart` says what wanted it."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise CannotStart(f"Port {port} cannot be used for {what}: {error.strerror}.") from error
    return listener


def free_port(port: int = 0, *, what: str) -> int:
    """The port itself if it is free, or any free one for 0."""
    with listen(port, what=what) as listener:
        return listener.getsockname()[1]
