"""One message from its body to its outcome: read, claimed, handled, finished; or tried again; or dead, and why."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from snavio.sdk import tracing
from snavio.sdk.batching import backoff_seconds
from snavio.sdk.claim_check import Payloads, fetch
from snavio.sdk.errors import RejectCommand, RetryCommand
from snavio.sdk.handlers import Handler, context_of
from snavio.sdk.idempotency import Busy, Finished, IdempotencyStore
from snavio.sdk.inbox import Message
from snavio.sdk.payloads import PayloadError
from snavio.wire.commands import Delivered

_log = logging.getLogger("snavio.sdk")
_decoder = msgspec.json.Decoder(Delivered)
_FINISH_TRIES = 3


class Done(msgspec.Struct, frozen=True, tag=True):
    """Delete it."""


class Again(msgspec.Struct, frozen=True, tag=True):
    """Let it come back after so many seconds."""

    seconds: float
    reason: str


class Dead(msgspec.Struct, frozen=True, tag=True):
    """Another attempt would end the same way: to the dead-letter queue."""

    reason: str


Outcome: TypeAlias = Done | Again | Dead
_DONE = Done()


class Handling:
    """Handles the messages of one target."""

    def __init__(
        self,
        target: str,
        handlers: Mapping[str, Handler],
        *,
        payloads: Payloads,
        store: IdempotencyStore | None,
        claim_seconds: float,
        attempts: int,
        retry_seconds: float,
        roll: Callable[[], float],
    ) -> None:
        self._target = target
        self._handlers = handlers
        self._payloads = payloads
        self._store = store
        self._claim_seconds = claim_seconds
        self._attempts = attempts
        self._retry_seconds = retry_seconds
        self._roll = roll
        self._claims: dict[str, str] = {}

    async def handle(self, message: Message) -> Outcome:
        """What becomes of a message. Only cancellation is raised."""
        try:
            delivered = _decoder.decode(message.body)
        except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
            return Dead(f"the message is not a Snavio command: {problem}")
        command = delivered.command
        if command.target != self._target:
            return Dead(f"the command is for {command.target}, not for {self._target}")
        handler = self._handlers.get(command.name)
        if handler is None:
            return Dead(f"{self._target} has no handler for {command.name}")
        try:
            return await self._once(handler, delivered, message)
        except RejectCommand as rejected:
            return Dead(rejected.reason)
        except PayloadError as problem:
            return Dead(f"the payload does not fit {command.name}: {problem}")
        except RetryCommand as retry:
            return self._failed(message, retry.reason, retry.seconds)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the worker goes on
            _log.exception("The handler of %s failed on command %s", command.name, delivered.metadata.id)
            return self._failed(message, f"{type(error).__name__}: {error}", None)

    async def renew_claims(self) -> None:
        """Keep what is being handled claimed."""
        if self._store is not None:
            for key, owner in list(self._claims.items()):
                await self._store.renew(key, owner, self._claim_seconds)

    async def _once(self, handler: Handler, delivered: Delivered, message: Message) -> Outcome:
        store = self._store
        if store is None:
            await self._call(handler, delivered, message, repeated=False)
            return _DONE
        key = idempotency_key(delivered)
        claim = await store.claim(key, message.id, self._claim_seconds)
        if isinstance(claim, Finished):
            return _DONE
        if isinstance(claim, Busy):
            return Again(max(1.0, claim.seconds), "another delivery of the command is being handled")
        self._claims[key] = message.id
        try:
            await self._call(handler, delivered, message, repeated=claim.repeated)
        except Exception:
            # A cancelled handler keeps its claim: it may have done half of its work, and the next one must know.
            await store.release(key, message.id)
            raise
        finally:
            del self._claims[key]
        await self._finish(store, key, message.id)
        return _DONE

    async def _call(
        self, handler: Handler, delivered: Delivered, message: Message, *, repeated: bool
    ) -> None:
        metadata, command = delivered.metadata, delivered.command
        with tracing.processing(
            target=command.target,
            name=command.name,
            source=command.source,
            command_id=metadata.id,
            traceparent=metadata.traceparent,
            tracestate=metadata.tracestate,
        ):
            if command.payload_ref is not None:
                payload = await fetch(command.payload_ref, self._payloads)
            elif isinstance(command.payload, msgspec.UnsetType):
                raise RejectCommand("the command has neither payload nor payload_ref")
            else:
                payload = bytes(command.payload)
            await handler.run(payload, context_of(delivered, attempt=message.receives, repeated=repeated))

    async def _finish(self, store: IdempotencyStore, key: str, owner: str) -> None:
        for attempt in range(1, _FINISH_TRIES + 1):
            try:
                await store.finish(key, owner)
            except Exception as error:  # noqa: BLE001 - the work is done: all that is lost is the memory of it
                if attempt == _FINISH_TRIES:
                    _log.warning("Command %s was handled but could not be remembered: %s", key, error)
            else:
                return

    def _failed(self, message: Message, reason: str, seconds: float | None) -> Outcome:
        if message.receives >= self._attempts:
            return Dead(f"failed {message.receives} times, last: {reason}")
        if seconds is None:
            seconds = backoff_seconds(
                message.receives, self._roll(), shortest=self._retry_seconds, longest=300.0
            )
        return Again(seconds, reason)


def idempotency_key(delivered: Delivered) -> str:
    """What makes two deliveries the same command. A replay keeps the id, so what was handled stays handled."""
    command = delivered.command
    return f"{command.target}/{command.name}/{command.source}/{delivered.metadata.id}"
