"""Listening to what the platform says.

async with Telemetry(url, token) as events:
    async for event in events:
        ...
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import AsyncExitStack
from typing import Protocol, Self

import msgspec

from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.batching import backoff_seconds
from snavio.sdk.errors import ClosedError, ConfigError
from snavio.sdk.http_config import HttpConfig, Token
from snavio.sdk.inbox import MAX_BATCH, Inbox, Message, SqsInbox
from snavio.sdk.reactions import FetchKeys, Pause, reaction
from snavio.wire.events import Event, decode_event

_log = logging.getLogger("snavio.sdk")


class TelemetryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How telemetry is read."""

    wait_seconds: int = 10
    visibility_seconds: int = 60
    """How long a batch of ten may be worked on before the queue shows it again."""


class Telemetry:
    """The tenant's events, typed, at least once and in no certain order (`event_id` tells repeats apart).

    An event is deleted when the next one is asked for, so one whose handling raised comes back. Several readers share
    the queue between them.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        queue_url: str | None = None,
        aws: AwsOptions | None = None,
        options: TelemetryOptions | None = None,
    ) -> None:
        self._origin = HttpConfig(url, token)
        self._queue_url = queue_url
        self._aws = aws or AwsOptions()
        self._options = options or TelemetryOptions()
        self._stack = AsyncExitStack()
        self._inbox: Inbox | None = None
        self._streams: list[AsyncGenerator[Event]] = []

    async def __aenter__(self) -> Self:
        queue_url = self._queue_url or (await self._origin.fetch()).telemetry_queue_url
        if queue_url is None:
            raise ConfigError("The tenant configuration names no telemetry queue.")
        sqs = await self._aws.client(self._stack, "sqs", read_timeout=self._options.wait_seconds + 20)
        self._inbox = SqsInbox(sqs, queue_url)
        return self

    async def __aexit__(self, *exc: object) -> None:
        # A loop left by `break` has not settled what it read yet.
        for stream in self._streams:
            await stream.aclose()
        await self._stack.aclose()

    def __aiter__(self) -> AsyncGenerator[Event]:
        if self._inbox is None:
            raise ClosedError("Telemetry is not open: use `async with`.")
        stream = events_in(self._inbox, self._options)
        self._streams.append(stream)
        return stream


async def events_in(inbox: Inbox, options: TelemetryOptions) -> AsyncGenerator[Event]:
    """The events of an inbox, each deleted once it has been dealt with."""
    failures = 0
    while True:
        try:
            messages = await inbox.receive(
                max_messages=MAX_BATCH,
                wait_seconds=options.wait_seconds,
                visibility_seconds=options.visibility_seconds,
            )
            failures = 0
        except Exception as error:  # noqa: BLE001 - a listener outlives its queue's bad moments
            failures += 1
            _log.warning("Telemetry could not be read: %s", error)
            await asyncio.sleep(backoff_seconds(failures, random.random(), shortest=0.5, longest=30.0))
            continue
        done: list[str] = []
        try:
            for message in messages:
                event = _decoded(message)
                if event is not None:
                    yield event
                done.append(message.receipt)
        finally:
            # Also when the reader stops in the middle: what it finished is gone, the rest goes back.
            await _settled(inbox, done, [m.receipt for m in messages if m.receipt not in done])


def _decoded(message: Message) -> Event | None:
    try:
        return decode_event(message.body)
    except msgspec.MsgspecError as problem:
        # A newer platform may tell what this version has no word for.
        _log.info("An event of telemetry was passed over: %s", problem)
        return None


async def _settled(inbox: Inbox, done: list[str], rest: list[str]) -> None:
    try:
        if done:
            await inbox.delete(done)
        if rest:
            await inbox.hold(rest, 0)
    except Exception as error:  # noqa: BLE001 - they come back, which readers must expect anyway
        _log.warning("Telemetry could not be acknowledged: %s", error)


class Reacts(Protocol):
    """What reactions need of a producer."""

    @property
    def source(self) -> str:
        """Whom it sends as."""
        ...

    @property
    def key_version(self) -> str:
        """The key it signs with."""
        ...

    def pause(self, target: str, name: str, until: float) -> None:
        """Hold a command back."""
        ...

    def refresh_soon(self) -> None:
        """Fetch the configuration early."""
        ...


async def reacting(events: AsyncIterable[Event], producer: Reacts) -> AsyncGenerator[Event]:
    """The same events, with the producer doing what they ask for: fetching new keys, holding back what is throttled."""
    stream = aiter(events)
    try:
        async for event in stream:
            react(event, producer)
            yield event
    finally:
        # Let the reader underneath settle what it has in hand.
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def react(event: Event, producer: Reacts) -> None:
    """Do what one event asks of a producer."""
    match reaction(event, source=producer.source, key_version=producer.key_version):
        case FetchKeys():
            producer.refresh_soon()
        case Pause(target, name, until):
            producer.pause(target, name, until)
        case None:
            pass
