"""Receiving commands.

app = Target("discord-bot", queue_url)

@app.command("notify-user")
async def notify(cmd: NotifyUser) -> None: ...

app.run()
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from snavio.sdk.aws_session import AwsOptions
from snavio.sdk.claim_check import Payloads, S3Payloads
from snavio.sdk.dynamodb_idempotency import DynamoDbStore
from snavio.sdk.handlers import Handler, understand
from snavio.sdk.handling import Handling
from snavio.sdk.idempotency import IdempotencyStore
from snavio.sdk.inbox import Inbox, SqsInbox
from snavio.sdk.intake import Intake, TargetOptions
from snavio.wire.names import is_command, is_name

F = TypeVar("F", bound=Callable[..., Any])


class Target:
    """A target with its handlers, consuming one queue.

    With `idempotency` (a store) or `idempotency_table` (a DynamoDB table) a command that was handled is not handled
    again. Dead commands go to `dlq_url`, or to the dead-letter queue of the queue's redrive policy.
    """

    def __init__(
        self,
        name: str,
        queue_url: str = "",
        *,
        dlq_url: str | None = None,
        idempotency: IdempotencyStore | None = None,
        idempotency_table: str | None = None,
        aws: AwsOptions | None = None,
        options: TargetOptions | None = None,
    ) -> None:
        if not is_name(name):
            raise ValueError(f"{name!r} is not the name of a target.")
        self.name = name
        self._queue_url = queue_url
        self._dlq_url = dlq_url
        self._store = idempotency
        self._table = idempotency_table
        self._aws = aws or AwsOptions()
        self._options = options or TargetOptions()
        self._handlers: dict[str, Handler] = {}
        self._intake: Intake | None = None
        self._drain_asked = False

    def command(
        self, name: str, *, concurrency: int | None = None, timeout_seconds: float | None = None
    ) -> Callable[[F], F]:
        """Handle a command: the payload is decoded to the type of the first parameter, a second gets the `Context`.

        Returning means handled. `RejectCommand` sends it to the dead-letter queue, `RetryCommand` asks for another
        try, anything else raised is tried again with growing pauses. `concurrency` limits this command alone.
        """
        if not is_command(name):
            raise ValueError(f"{name!r} is not the name of a command.")
        if name in self._handlers:
            raise ValueError(f"{self.name} has two handlers for {name}.")

        def register(function: F) -> F:
            self._handlers[name] = understand(
                function, concurrency=concurrency, timeout_seconds=timeout_seconds
            )
            return function

        return register

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then drain."""
        asyncio.run(self._serve_until_signalled())

    async def serve(self) -> None:
        """Serve until `drain` is called; cancelled, hand everything back at once."""
        async with AsyncExitStack() as stack:
            sqs = await self._aws.client(
                stack,
                "sqs",
                max_pool_connections=self._options.polls + 10,
                read_timeout=self._options.wait_seconds + 20,
            )
            store = self._store
            if store is None and self._table is not None:
                store = DynamoDbStore(await self._aws.client(stack, "dynamodb"), self._table)

            def s3() -> Awaitable[Any]:
                return self._aws.client(stack, "s3")

            await self.serve_over(SqsInbox(sqs, self._queue_url), S3Payloads(s3), store)

    async def serve_over(
        self, inbox: Inbox, payloads: Payloads, store: IdempotencyStore | None = None
    ) -> None:
        """Serve from another inbox: the testing kit's, for one."""
        redrive = await inbox.redrive()
        options = self._options
        handling = Handling(
            self.name,
            self._handlers,
            payloads=payloads,
            store=store or self._store,
            claim_seconds=float(options.visibility_seconds),
            attempts=min(options.attempts, redrive.max_receives or options.attempts),
            retry_seconds=options.retry_seconds,
            roll=random.random,
        )
        self._intake = Intake(inbox, handling, options=options, dlq_url=self._dlq_url or redrive.dlq_url)
        if self._drain_asked:
            self._intake.drain(0)
        try:
            await self._intake.run()
        finally:
            self._intake = None
            self._drain_asked = False

    def drain(self, seconds: float | None = None) -> None:
        """Stop receiving; `serve` returns when what is in hand is finished, or handed back after so many seconds."""
        self._drain_asked = True
        if self._intake is not None:
            self._intake.drain(seconds)

    async def _serve_until_signalled(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.drain)
        await self.serve()
