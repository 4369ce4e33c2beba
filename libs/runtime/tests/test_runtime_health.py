from __future__ import annotations

import asyncio
import json

import anyio
import pytest

from snavio.runtime import health
from snavio.runtime.common_config import CommonConfig
from snavio.runtime.health import serve_health
from snavio.runtime.outcome import Done
from snavio.runtime.worker import Worker


@pytest.fixture
async def worker(log, queues) -> Worker:
    async def handler(messages):
        return [Done()] * len(messages)

    async def refresh():
        pass

    worker = Worker("shield", CommonConfig(stage="test"), worker_id="w1", log=log)
    worker.consume(
        queues=queues,
        queue="memory://sqs/000000000000/work",
        dlq="memory://sqs/000000000000/work-dlq",
        handler=handler,
    )
    worker.every(2.0, refresh, name="refresh-keys")
    worker.wired = True
    return worker


@pytest.fixture
async def port(worker):
    async with serve_health(worker) as port:
        yield port


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def get(port: int, path: str, method: str = "GET") -> tuple[int, dict]:
    answer = await exchange(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head or method == "HEAD"
    return int(head.split()[1]), json.loads(body) if body else {}


async def test_a_worker_at_work_is_live_and_ready(port):
    assert await get(port, "/livez") == (200, {"live": True, "reasons": []})
    assert await get(port, "/readyz?verbose=1") == (200, {"ready": True, "reasons": []})
    assert await get(port, "/readyz", "HEAD") == (200, {})


async def test_unreadiness_is_503_with_its_reasons(port, worker):
    worker.ready("keys", lambda: "no keys yet")
    assert await get(port, "/readyz") == (503, {"ready": False, "reasons": ["keys: no keys yet"]})
    worker.draining = True
    assert await get(port, "/readyz") == (503, {"ready": False, "reasons": ["draining"]})
    assert (await get(port, "/livez"))[0] == 200


async def test_a_stuck_handler_makes_the_worker_not_live(port, worker, monkeypatch):
    monkeypatch.setattr(worker.intakes[0], "ailment", lambda: "work: a handler has been at work for 999 s")
    code, body = await get(port, "/livez")
    assert (code, body["reasons"]) == (503, ["work: a handler has been at work for 999 s"])


async def test_status_tells_what_the_worker_is_doing(port):
    code, status = await get(port, "/statusz")
    assert code == 200
    assert (status["service"], status["worker"], status["stage"]) == ("shield", "w1", "test")
    assert (status["live"], status["ready"], status["draining"]) == (True, True, False)
    assert status["version"]
    assert status["intakes"]["work"]["in_hand"] == 0
    assert status["intakes"]["work"]["tally"]["received"] == 0
    assert status["tasks"][0]["name"] == "refresh-keys"
    assert status["tasks"][0]["last_run_seconds_ago"] is None


async def test_other_paths_and_methods_are_refused_politely(port):
    assert (await get(port, "/"))[0] == 404
    assert (await get(port, "/livez", "POST"))[0] == 405


@pytest.mark.parametrize(
    "garbage",
    [b"\r\n\r\n", b"\x16\x03\x01\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET " + b"/" * 100_000, b"\xff" * 5000],
    ids=["empty", "tls", "no path", "endless path", "noise"],
)
async def test_garbage_ends_only_its_own_connection(port, garbage):
    answer = await exchange(port, garbage)
    assert answer == b"" or answer.split()[1] in {b"404", b"405"}
    assert (await get(port, "/livez"))[0] == 200


async def test_a_slow_client_is_hung_up_on(port, monkeypatch):
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /livez")
    with anyio.fail_after(10):
        assert await reader.read() == b""
    writer.close()


async def test_a_crowd_does_not_shut_out_the_port_for_good(port):
    crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
    for _, writer in crowd:
        writer.close()
    with anyio.fail_after(10):
        while True:
            answer = await exchange(port, b"GET /livez HTTP/1.1\r\n\r\n")
            if answer.startswith(b"HTTP/1.1 200"):
                break


async def test_the_port_bound_is_logged(port, lines):
    (line,) = [line for line in lines if line["event"] == "health.listening"]
    assert line["port"] == port != 0
