"""A tiny HTTP port for whoever keeps the worker running: `/livez`, `/readyz`, `/statusz`.

Live: restart me when this fails. Ready: send me traffic, or wait for me. Status: what I am doing, for people.
Answers one request a connection, and owes slow or garbled clients nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib import metadata
from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.runtime.log_events import LogEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from snavio.runtime.worker import Worker

_HEAD_LIMIT = 4096
_PATIENCE_SECONDS = 2.0
_MAX_CONNECTIONS = 64


class Answer(msgspec.Struct, frozen=True):
    """A status code and a JSON body."""

    status: HTTPStatus
    body: bytes


@asynccontextmanager
async def serve_health(worker: Worker) -> AsyncGenerator[int]:
    """Listen while the block runs; gives the port bound."""
    open_connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_connections
        open_connections += 1
        try:
            if open_connections <= _MAX_CONNECTIONS:
                # Whatever a client does, it can end only its own connection.
                with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError):
                    async with asyncio.timeout(_PATIENCE_SECONDS):
                        await _converse(worker, reader, writer)
        except TimeoutError:
            pass
        finally:
            open_connections -= 1
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    config = worker.config
    server = await asyncio.start_server(talk, config.health_host, config.health_port, limit=_HEAD_LIMIT)
    port: int = server.sockets[0].getsockname()[1]
    worker.log.info(LogEvent.HEALTH_LISTENING, host=config.health_host, port=port)
    try:
        yield port
    finally:
        server.close()


def answer(worker: Worker, request_line: bytes) -> Answer:
    """What to say to a request, by its first line."""
    method, _, rest = request_line.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in {b"GET", b"HEAD"}:
        return _say(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "only GET is answered here"})
    match path:
        case b"/livez":
            return _verdict("live", worker.ailments())
        case b"/readyz":
            return _verdict("ready", worker.unready())
        case b"/statusz":
            return _say(HTTPStatus.OK, status(worker))
        case _:
            return _say(HTTPStatus.NOT_FOUND, {"error": "ask for /livez, /readyz or /statusz"})


def status(worker: Worker) -> dict[str, object]:
    """What the worker is doing."""
    return {
        "service": worker.service,
        "worker": worker.worker_id,
        "version": metadata.version("snavio-runtime"),
        "stage": worker.config.stage,
        "uptime_seconds": round(anyio.current_time() - worker.started_at, 1),
        "draining": worker.draining,
        "live": not worker.ailments(),
        "ready": not worker.unready(),
        "reasons": [*worker.ailments(), *worker.unready()],
        "intakes": {intake.name: intake.status() for intake in worker.intakes},
        "tasks": [task.status() for task in worker.tasks],
    }


async def _converse(worker: Worker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    said = answer(worker, head.partition(b"\r\n")[0])
    lines = (
        f"HTTP/1.1 {said.status.value} {said.status.phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(said.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    )
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    if not head.startswith(b"HEAD "):
        writer.write(said.body)
    await writer.drain()


def _verdict(word: str, reasons: list[str]) -> Answer:
    code = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    return _say(code, {word: not reasons, "reasons": reasons})


def _say(code: HTTPStatus, body: object) -> Answer:
    return Answer(code, msgspec.json.encode(body) + b"\n")
