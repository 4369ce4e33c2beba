"""What a target's author writes, understood: which payload a handler takes, whether it wants the context, its limits."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import msgspec

from snavio.sdk.payloads import Decode, decoder_of
from snavio.wire.commands import Delivered


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a command beside its payload."""

    id: str
    source: str
    """Who sent it, `<tenant>/<service>`, as the platform authenticated them."""
    target: str
    name: str
    timestamp: str
    dispatched_at: str
    attempt: int
    """How often it has been received, this time included."""
    possible_duplicate: bool
    """It may have been handled before: the platform, or an attempt that did not finish, cannot tell."""
    correlation_id: str | None = None
    schema_version: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    replayed: bool = False
    replay_id: str | None = None
    replay_reason: str | None = None


class Handler(msgspec.Struct, frozen=True):
    """A handler ready to be called."""

    call: Callable[..., Any]
    decode: Decode
    wants_context: bool
    is_async: bool
    slots: AbstractAsyncContextManager[Any]
    timeout_seconds: float | None

    async def run(self, payload: bytes, context: Context) -> None:
        """Decode the payload, wait for a slot and call the handler; a plain function runs in a thread."""
        arguments = (self.decode(payload), context) if self.wants_context else (self.decode(payload),)
        async with self.slots, asyncio.timeout(self.timeout_seconds):
            if self.is_async:
                await self.call(*arguments)
            else:
                await asyncio.to_thread(self.call, *arguments)


def understand(
    function: Callable[..., Any], *, concurrency: int | None, timeout_seconds: float | None
) -> Handler:
    """Read a handler's signature: the payload first, then the context if it has a second parameter."""
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(parameters) not in (1, 2):
        raise TypeError(f"{function.__name__} must take a payload, and a context if it wants one.")
    wanted = typing.get_type_hints(function).get(parameters[0].name, Any)
    return Handler(
        call=function,
        decode=decoder_of(wanted),
        wants_context=len(parameters) > 1,
        is_async=inspect.iscoroutinefunction(function),
        slots=asyncio.Semaphore(concurrency) if concurrency else nullcontext(),
        timeout_seconds=timeout_seconds,
    )


def context_of(delivered: Delivered, *, attempt: int, repeated: bool) -> Context:
    """The context of a delivery."""
    metadata, command = delivered.metadata, delivered.command
    return Context(
        id=metadata.id,
        source=command.source,
        target=command.target,
        name=command.name,
        timestamp=metadata.timestamp,
        dispatched_at=metadata.dispatched_at,
        attempt=attempt,
        possible_duplicate=metadata.possible_duplicate or repeated,
        correlation_id=metadata.correlation_id,
        schema_version=metadata.schema_version,
        traceparent=metadata.traceparent,
        tracestate=metadata.tracestate,
        replayed=metadata.replayed,
        replay_id=metadata.replay_id,
        replay_reason=metadata.replay_reason,
    )
