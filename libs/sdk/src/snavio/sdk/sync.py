"""The producer for programs without an event loop: the same producer, run on a thread of its own.

with SyncProducer("https://snavio.example", token, source="acme/billing") as producer:
    producer.send("discord-bot", "notify-user", {"user": 42, "text": "Paid."})
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.errors import ClosedError
from snavio.sdk.http_config import Token
from snavio.sdk.producer import Command, Producer, ProducerOptions
from snavio.sdk.sender import Sent

T = TypeVar("T")


class SyncProducer:
    """A `Producer` behind plain calls, safe to use from many threads; it takes the same arguments, or a producer.

    Threads that send at the same time share batches.
    """

    def __init__(
        self,
        url: str = "",
        token: Token = "",
        *,
        source: str | None = None,
        aws: AwsOptions | None = None,
        options: ProducerOptions | None = None,
        producer: Producer | None = None,
    ) -> None:
        self._producer = producer or Producer(url, token, source=source, aws=aws, options=options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        # A daemon: a program that ends without closing must be able to end. What `send` returned for is on the bus.
        self._thread = threading.Thread(target=self._loop.run_forever, name="snavio-producer", daemon=True)
        self._thread.start()
        try:
            self._call(self._producer.__aenter__()).result()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def send(self, target: str, name: str, payload: Any, **fields: Any) -> Sent:
        """Send a command and wait until the bus has it. See `Producer.send`."""
        return self.submit(target, name, payload, **fields).result()

    def submit(self, target: str, name: str, payload: Any, **fields: Any) -> Future[Sent]:
        """Send a command without waiting; the future has what `send` would return or raise."""
        return self._call(self._producer.send(target, name, payload, **fields))

    def send_many(self, commands: Iterable[Command]) -> list[Sent | Exception]:
        """Send many commands and wait for all. See `Producer.send_many`."""
        return self._call(self._producer.send_many(list(commands))).result()

    def pause(self, target: str, name: str, until: float) -> None:
        """Hold a command back until then. See `Producer.pause`."""
        self._opened().call_soon_threadsafe(self._producer.pause, target, name, until)

    def refresh(self) -> None:
        """Fetch the configuration now."""
        self._call(self._producer.refresh()).result()

    @property
    def key_version(self) -> str:
        """The version of the key commands are signed with now."""
        return self._producer.key_version

    def close(self) -> None:
        """Send what waits, then end the thread."""
        if self._thread is not None:
            try:
                self._call(self._producer.close()).result()
            finally:
                self._stop()

    def _call(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            loop = self._opened()
        except ClosedError:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, loop)

    def _opened(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise ClosedError("The producer is not open: use `with`.")
        return self._loop

    def _stop(self) -> None:
        thread, self._thread = self._thread, None
        loop, self._loop = self._loop, None
        if thread is not None and loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
