"""Where commands are taken from: a dead-letter queue, or the archive by way of the capture rule and its queue.

Taking hides a message from others; it is gone only when `done` says so, and back at once when it is left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import anyio
import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import SnavioError, Transient
from snavio.aws.ports import MAX_BATCH, Queues
from snavio.aws.values import Received
from snavio.replay.recovered import Recovered, recover, replay_name
from snavio.wire.names import Names

_HIDDEN_SECONDS = 900
_QUIET_POLLS = 2
"""A queue is spread over many machines: one poll that finds nothing proves nothing."""
_WAIT_SECONDS = 2


class Taken(msgspec.Struct, frozen=True):
    """A message in hand, and the command in it where there is one."""

    message: Received
    command: Recovered | None


class Origin(Protocol):
    """A place commands are replayed from."""

    keeps_unwanted: bool
    """Whether what is not replayed belongs there and stays."""

    def taken(self) -> AsyncIterator[list[Taken]]:
        """Every message there is, in lots of up to ten, each once."""
        ...

    async def done(self, some: Sequence[Taken]) -> None:
        """These are no longer needed."""
        ...

    async def leave(self, some: Sequence[Taken]) -> None:
        """These stay where they are."""
        ...

    async def depth(self) -> int | None:
        """About how many there are, where that can be told."""
        ...


class QueueOrigin:
    """What lies in a queue: a dead-letter queue of the platform."""

    keeps_unwanted = True

    def __init__(
        self,
        queues: Queues,
        url: str,
        client: Callable[[str], Awaitable[Any]],
        *,
        wait_seconds: int = _WAIT_SECONDS,
    ) -> None:
        self._queues = queues
        self._wait = wait_seconds
        self._url = url
        self._client = client
        self._seen: set[str] = set()

    async def taken(self) -> AsyncIterator[list[Taken]]:
        """Every message, until polls find nothing that was not seen before."""
        quiet = 0
        while quiet < _QUIET_POLLS:
            received = await self._queues.receive(
                self._url, wait_seconds=self._wait, visibility_seconds=_HIDDEN_SECONDS
            )
            fresh = [message for message in received if message.id not in self._seen]
            self._seen |= {message.id for message in fresh}
            quiet = 0 if fresh else quiet + 1
            if fresh:
                yield [Taken(message, recover(message.body)) for message in fresh]

    async def done(self, some: Sequence[Taken]) -> None:
        """Delete these."""
        for start in range(0, len(some), MAX_BATCH):
            receipts = [one.message.receipt for one in some[start : start + MAX_BATCH]]
            faults = [fault for fault in await self._queues.delete(self._url, receipts) if fault]
            if faults:
                raise Transient(f"{len(faults)} messages were replayed and could not be deleted: {faults[0]}")

    async def leave(self, some: Sequence[Taken]) -> None:
        """Let these be seen again at once."""
        for start in range(0, len(some), MAX_BATCH):
            # One that cannot be handed back comes back by itself.
            await self._queues.set_visibility(
                self._url, [(one.message.receipt, 0) for one in some[start : start + MAX_BATCH]]
            )

    async def depth(self) -> int | None:
        """About how many messages wait."""
        try:
            sqs = await self._client("sqs")
            with translated("GetQueueAttributes"):
                answer = await sqs.get_queue_attributes(
                    QueueUrl=self._url, AttributeNames=["ApproximateNumberOfMessages"]
                )
        except SnavioError:
            return None
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])


class ArchiveOrigin:
    """What EventBridge brings back from the archive under the name of one replay."""

    keeps_unwanted = False

    def __init__(
        self,
        queues: Queues,
        names: Names,
        client: Callable[[str], Awaitable[Any]],
        *,
        name: str,
        since: float,
        until: float,
        resume: bool,
        settle_polls: int = 5,
    ) -> None:
        self._captured = QueueOrigin(queues, queues.url_of(names.queue_arn(names.replay)), client)
        self._queues = queues
        self._url = queues.url_of(names.queue_arn(names.replay))
        self._names = names
        self._client = client
        self._name = name
        self._since = since
        self._until = until
        self._resume = resume
        self._settle = settle_polls

    async def taken(self) -> AsyncIterator[list[Taken]]:
        """Every event of this replay; those of others are left to them."""
        if not self._resume:
            await self._start()
        quiet = 0
        while quiet < self._settle:
            received = await self._queues.receive(
                self._url, wait_seconds=_WAIT_SECONDS, visibility_seconds=_HIDDEN_SECONDS
            )
            ours = [message for message in received if replay_name(message.body) == self._name]
            others = [Taken(message, None) for message in received if message not in ours]
            if others:
                await self.leave(others)
            if ours:
                quiet = 0
                yield [Taken(message, recover(message.body)) for message in ours]
            elif await self._over():
                quiet += 1
            else:
                await anyio.sleep(_WAIT_SECONDS)

    async def done(self, some: Sequence[Taken]) -> None:
        """Delete these copies; the archive keeps its own."""
        await self._captured.done(some)

    async def leave(self, some: Sequence[Taken]) -> None:
        """Let these be seen again at once."""
        await self._captured.leave(some)

    async def depth(self) -> int | None:
        """Not known before EventBridge has brought everything back."""
        return None

    async def _start(self) -> None:
        names = self._names
        events = await self._client("events")
        with translated("StartReplay"):
            await events.start_replay(
                ReplayName=self._name,
                EventSourceArn=names.bus_arn.replace(f"event-bus/{names.bus}", f"archive/{names.archive}"),
                EventStartTime=datetime.fromtimestamp(self._since, UTC),
                EventEndTime=datetime.fromtimestamp(self._until, UTC),
                Destination={"Arn": names.bus_arn, "FilterArns": [names.rule_arn(names.capture_rule)]},
            )

    async def _over(self) -> bool:
        events = await self._client("events")
        with translated("DescribeReplay"):
            state = str((await events.describe_replay(ReplayName=self._name))["State"])
        if state in ("FAILED", "CANCELLED"):
            raise SnavioError(f"EventBridge ended the replay {self._name} as {state.lower()}.")
        return state == "COMPLETED"
