"""Sending commands.

async with Producer("https://snavio.example", token, source="acme/billing") as producer:
    await producer.send("discord-bot", "notify-user", {"user": 42, "text": "Paid."})
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from enum import StrEnum
from typing import Any, Self, TypeAlias
from uuid import UUID

import msgspec

from snavio.sdk import tracing
from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.bus import Bus, open_bus
from snavio.sdk.errors import ClosedError, ThrottledError
from snavio.sdk.http_config import ConfigSource, HttpConfig, Token
from snavio.sdk.keyring import Keyring
from snavio.sdk.outgoing import Outgoing, prepare
from snavio.sdk.sender import Sender, SenderOptions, Sent
from snavio.sdk.tenant_config import TenantConfig
from snavio.sdk.throttles import Throttles


class WhenThrottled(StrEnum):
    """What `send` does with a command the platform asked to hold back."""

    WAIT = "wait"
    RAISE = "raise"


class ProducerOptions(SenderOptions, frozen=True, kw_only=True):
    """How a producer behaves."""

    poll_seconds: float | None = None
    """How often the configuration is fetched; as often as it says itself when not given."""
    refresh_gap_seconds: float = 10.0
    """The least time between two fetches, whatever telemetry says."""
    when_throttled: WhenThrottled = WhenThrottled.WAIT


class Command(msgspec.Struct, frozen=True):
    """One of many, for `send_many`."""

    target: str
    name: str
    payload: Any
    id: str | UUID | None = None
    correlation_id: str | None = None
    schema_version: str | None = None


OpenBus: TypeAlias = Callable[[TenantConfig, str], AbstractAsyncContextManager[Bus]]


class Producer:
    """Signs and sends the commands of one source, with the key and the credentials of the moment.

    `url` is the gateway's; `token` the tenant's, or a function that gives one. `source` may be left out when the tenant
    has a single service. Leaving the `async with` block sends all that still waits. `origin` and `opened` put something
    else in the place of the gateway and of the bus, as the testing kit does.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        source: str | None = None,
        aws: AwsOptions | None = None,
        options: ProducerOptions | None = None,
        now: Callable[[], float] = time.time,
        origin: ConfigSource | None = None,
        opened: OpenBus | None = None,
    ) -> None:
        self._origin = origin or HttpConfig(url, token)
        self._options = options or ProducerOptions()
        self._opened = opened or _event_bridge(aws or AwsOptions(), now, self._options.in_flight)
        self._wanted = source
        self._now = now
        self._throttles = Throttles()
        self._stack = AsyncExitStack()
        self._keyring: Keyring | None = None
        self._sender: Sender | None = None

    async def __aenter__(self) -> Self:
        keyring = Keyring(
            self._origin,
            source=self._wanted,
            now=self._now,
            roll=random.random,
            poll_seconds=self._options.poll_seconds,
            gap_seconds=self._options.refresh_gap_seconds,
        )
        await keyring.refresh()
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(self._opened(keyring.config, keyring.source))
            polling = asyncio.create_task(keyring.run(), name="snavio-poll")
            stack.push_async_callback(_ended, polling)
            self._keyring = keyring
            self._sender = Sender(
                bus,
                keyring.signer,
                options=self._options,
                now=self._now,
                roll=random.random,
                on_no_key=keyring.refresh_soon,
            )
            stack.push_async_callback(self._sender.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what waits, then let go of everything."""
        await self._stack.aclose()

    @property
    def source(self) -> str:
        """Whom commands are sent as."""
        return self._opened_keyring().source

    @property
    def key_version(self) -> str:
        """The version of the key commands are signed with now."""
        return self._opened_keyring().signer().version_id

    @property
    def config(self) -> TenantConfig:
        """The tenant's configuration as last fetched."""
        return self._opened_keyring().config

    async def send(
        self,
        target: str,
        name: str,
        payload: Any,
        *,
        id: str | UUID | None = None,  # noqa: A002 - what it is called in the contract
        correlation_id: str | None = None,
        schema_version: str | None = None,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Sent:
        """Send a command and wait until the bus has it.

        Raises `InvalidCommandError` for what the platform would refuse, `SendError` when the bus will not have it.
        """
        with tracing.sending(target, name):
            if traceparent is None:
                traceparent, tracestate = tracing.outgoing_context()
            command = prepare(
                target,
                name,
                payload,
                command_id=id,
                correlation_id=correlation_id,
                schema_version=schema_version,
                traceparent=traceparent,
                tracestate=tracestate,
            )
            return await (await self._admit(command))

    async def send_many(self, commands: Iterable[Command]) -> list[Sent | Exception]:
        """Send many commands and wait for all; the answer to each, in order, is what `send` returns or raises.

        All are checked before the first is sent, so an `InvalidCommandError` means that none was.
        """
        traceparent, tracestate = tracing.outgoing_context()
        prepared = [
            prepare(
                command.target,
                command.name,
                command.payload,
                command_id=command.id,
                correlation_id=command.correlation_id,
                schema_version=command.schema_version,
                traceparent=traceparent,
                tracestate=tracestate,
            )
            for command in commands
        ]
        futures: list[asyncio.Future[Sent]] = []
        results: dict[int, Exception] = {}
        for number, command in enumerate(prepared):
            try:
                futures.append(await self._admit(command))
            except ThrottledError as error:
                results[number] = error
        answers = iter(await asyncio.gather(*futures, return_exceptions=True))
        return [
            results[number] if number in results else _raised_if_fatal(next(answers))
            for number in range(len(prepared))
        ]

    def pause(self, target: str, name: str, until: float) -> None:
        """Hold a command back until then, seconds since the epoch: the platform said it is throttled."""
        self._throttles.pause(target, name, until, self._now())

    def refresh_soon(self) -> None:
        """Fetch the configuration before its time: there is reason to believe that a newer key exists."""
        self._opened_keyring().refresh_soon()

    async def refresh(self) -> None:
        """Fetch the configuration now."""
        await self._opened_keyring().refresh()

    async def _admit(self, command: Outgoing) -> asyncio.Future[Sent]:
        sender = self._sender
        if sender is None:
            raise ClosedError("The producer is not open: use `async with`.")
        while (until := self._throttles.until(command.target, command.name, now := self._now())) is not None:
            if self._options.when_throttled is WhenThrottled.RAISE:
                raise ThrottledError(command.target, command.name, until)
            await asyncio.sleep(until - now)
        await sender.room()
        return sender.submit(command)

    def _opened_keyring(self) -> Keyring:
        if self._keyring is None:
            raise ClosedError("The producer is not open: use `async with`.")
        return self._keyring


def _event_bridge(aws: AwsOptions, now: Callable[[], float], connections: int) -> OpenBus:
    def opened(config: TenantConfig, source: str) -> AbstractAsyncContextManager[Bus]:
        return open_bus(config, source, aws, now, connections=connections)

    return opened


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _raised_if_fatal(answer: Sent | BaseException) -> Sent | Exception:
    if isinstance(answer, BaseException) and not isinstance(answer, Exception):
        raise answer
    return answer
