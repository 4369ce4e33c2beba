"""An AWS endpoint that answers from memory, in a process of its own: so cheap that it is never what is measured.

    python bench/canned.py <stock file>

Queues hold an endless supply of the stock's messages and are closed until told otherwise: a poll on a closed queue waits, as
a long poll on an empty one does. An open queue answers every poll with ten. A queue can also be given a schedule: then
messages come at a fixed rate, whatever the workers do, and each is timed from the moment it was due to the moment it
was sent on. Besides SQS it answers what a worker needs to start: a snapshot in S3, its public key in KMS, a changelog
without changes, and an outbox that takes everything.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from stock import MARK, Stock

_QUEUE = re.compile(rb'"QueueUrl": ?"[^"]*/([^"/]+)"')
_WAIT = re.compile(rb'"WaitTimeSeconds": ?(\d+)')
_COMMAND_ID = re.compile(MARK.encode() + rb"-[0-9a-f-]{27}")
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)")
_TARGET = re.compile(rb"\r\nx-amz-target: ?\w+\.(\w+)")
_TICK_SECONDS = 0.001


def response(body: bytes, content_type: bytes = b"application/x-amz-json-1.0") -> bytes:
    """A whole HTTP response."""
    return (
        b'HTTP/1.1 200 OK\r\nx-amzn-RequestId: 0\r\nETag: "0"\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b'
        % (content_type, len(body), body)
    )


def _entries(count: int) -> bytes:
    entries = [
        {"Id": str(n), "MessageId": f"{n:036d}", "MD5OfMessageBody": "0" * 32, "MD5OfBody": "0" * 32}
        for n in range(count)
    ]
    return response(json.dumps({"Successful": entries, "Failed": []}).encode())


ENTRIES = [_entries(count) for count in range(11)]
NOTHING = response(b"{}")
FIXED = {
    b"batchwriteitem": response(b'{"UnprocessedItems":{}}'),
    b"getitem": NOTHING,
    b"query": response(b'{"Items":[],"Count":0,"ScannedCount":0}'),
}


class Queue:
    """One queue, by its name."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._is_open = False
        self._polls: deque[asyncio.Transport] = deque()
        self._due: deque[bytes] = deque()

    def __len__(self) -> int:
        """How many polls wait."""
        return len(self._polls)

    def receive(self, transport: asyncio.Transport, body: bytes) -> None:
        """Answer a poll, now or when there is something."""
        if self._is_open:
            self._endpoint.counts["received"] += 10
            transport.write(self._endpoint.next_batch())
            return
        self._polls.append(transport)
        self._hand_out()
        if transport in self._polls:
            wait = _WAIT.search(body)
            seconds = int(wait[1]) if wait else 0
            asyncio.get_running_loop().call_later(seconds, self._expire, transport)

    def set_open(self, *, is_open: bool) -> None:
        """Let messages out, or hold them back."""
        self._is_open = is_open
        while is_open and self._polls:
            self.receive(self._polls.popleft(), b"")

    async def keep_to_schedule(self, rate: float, count: int) -> None:
        """Make `count` messages available at a fixed rate."""
        started = time.time()
        stock = self._endpoint.messages
        made = 0
        while made < count:
            await asyncio.sleep(_TICK_SECONDS)
            for number in range(made, min(count, int((time.time() - started) * rate))):
                message, command_id = stock[number % len(stock)]
                self._endpoint.due_at[command_id] = started + number / rate
                self._due.append(message)
                made += 1
            self._hand_out()

    def _hand_out(self) -> None:
        while self._due and self._polls:
            batch = [self._due.popleft() for _ in range(min(10, len(self._due)))]
            self._endpoint.counts["received"] += len(batch)
            self._polls.popleft().write(receive_answer(batch))

    def forget(self, transport: asyncio.Transport) -> bool:
        """Give up a poll, if this is one; whether it was."""
        if transport not in self._polls:
            return False
        self._polls.remove(transport)
        return True

    def _expire(self, transport: asyncio.Transport) -> None:
        if self.forget(transport):
            transport.write(NOTHING)


def receive_answer(messages: list[bytes]) -> bytes:
    """The answer of ReceiveMessage."""
    return response(b'{"Messages":[' + b",".join(messages) + b"]}")


class Endpoint:
    """Everything there is, and what has been asked of it."""

    def __init__(self, stock: Stock) -> None:
        self.messages = [(message, _COMMAND_ID.findall(message)[0]) for message in map(bytes, stock.messages)]
        texts = [text for text, _ in self.messages]
        self._batches = [receive_answer(texts[at : at + 10]) for at in range(0, len(texts), 10)]
        self._turn = 0
        self.queues: dict[bytes, Queue] = {}
        self.counts: Counter[str] = Counter()
        self.due_at: dict[bytes, float] = {}
        self.latencies: list[float] = []
        self.objects = {
            path.encode(): response(body, b"binary/octet-stream") for path, body in stock.objects.items()
        }
        key = {"KeyId": "snapshots", "PublicKey": stock.public_key, "SigningAlgorithms": ["ECDSA_SHA_256"]}
        self.answers = FIXED | {b"getpublickey": response(msgspec.json.encode(key))}

    def next_batch(self) -> bytes:
        """Ten messages, the next ones of the stock."""
        self._turn = (self._turn + 1) % len(self._batches)
        return self._batches[self._turn]

    def queue(self, name: bytes) -> Queue:
        """A queue; every name is one."""
        found = self.queues.get(name)
        if found is None:
            found = self.queues[name] = Queue(self)
        return found

    def call(self, transport: asyncio.Transport, operation: bytes, body: bytes) -> None:
        """Answer a call of one of AWS's JSON protocols."""
        self.counts["calls"] += 1
        if operation == b"receivemessage":
            self.queue(_name(body)).receive(transport, body)
        elif operation == b"sendmessagebatch":
            count = body.count(b'"MessageBody"')
            self._sent(_name(body), body, count)
            transport.write(ENTRIES[count])
        elif operation in {b"deletemessagebatch", b"changemessagevisibilitybatch"}:
            count = body.count(b'"ReceiptHandle"')
            self.counts["deleted" if operation.startswith(b"d") else "renewed"] += count
            transport.write(ENTRIES[count])
        else:
            self.counts["recorded"] += body.count(b'"PutRequest"')
            self.counts["refreshes"] += operation == b"query"
            transport.write(self.answers[operation])

    def _sent(self, queue: bytes, body: bytes, count: int) -> None:
        self.counts["escalated" if queue.endswith(b"-slow") else "sent"] += count
        if self.due_at:
            now = time.time()
            for command_id in dict.fromkeys(_COMMAND_ID.findall(body)):
                due = self.due_at.pop(command_id, None)
                if due is not None:
                    self.latencies.append(now - due)

    def control(self, path: str) -> object:
        """What the bench asks: to open or close a queue, to start a schedule, or for figures."""
        verb, *arguments = path.strip("/").split("/")[1:]
        match verb:
            case "open" | "close":
                self.queue(arguments[0].encode()).set_open(is_open=verb == "open")
            case "schedule":
                self.latencies.clear()
                self.due_at.clear()
                queue, rate, count = arguments
                self._schedule = asyncio.ensure_future(
                    self.queue(queue.encode()).keep_to_schedule(float(rate), int(count))
                )
            case "latencies":
                return self.latencies
            case "polls":
                return len(self.queue(arguments[0].encode()))
            case _:
                pass
        return {**self.counts, "cpu": time.process_time(), "at": time.perf_counter()}


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as AWS's clients speak it: one request at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        for queue in self._endpoint.queues.values():
            queue.forget(self._transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._buffer:
            data = self._buffer + data
        end = data.find(b"\r\n\r\n")
        head = data[:end].lower() if end >= 0 else b""
        length = _LENGTH.search(head)
        if end < 0 or len(data) < end + 4 + (int(length[1]) if length else 0):
            self._buffer = data
            return
        self._buffer = b""
        target = _TARGET.search(head)
        if target is not None:
            self._endpoint.call(self._transport, target[1], data[end + 4 :])
            return
        path = data[: data.index(b"\r\n")].split(b" ")[1].split(b"?")[0]
        if path.startswith(b"/control/"):
            self._transport.write(response(msgspec.json.encode(self._endpoint.control(path.decode()))))
        else:
            self._transport.write(self._endpoint.objects[path])


def _name(body: bytes) -> bytes:
    found = _QUEUE.search(body)
    return found[1] if found else b""


async def serve(stock: Stock) -> None:
    """Print the port and answer until standard input ends."""
    endpoint = Endpoint(stock)
    make: Callable[[], Connection] = lambda: Connection(endpoint)  # noqa: E731 - what create_server wants
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(serve(msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Stock)))
