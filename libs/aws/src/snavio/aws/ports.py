"""The narrow ports through which Snavio reaches AWS.

Every port has an adapter and an in-memory fake (`snavio.aws.memory`) that pass one contract suite. The adapters of SQS
and DynamoDB are carried by a lean client (`snavio.aws.lean`) or by aiobotocore (`snavio.aws.boto`), which carries the
rest. Adapters hold to AWS's own limits and raise `Permanent` before calling when a caller exceeds them, since
an emulator may be more lenient than AWS. They raise the errors of `snavio.aws.errors` and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from snavio.aws.values import (
        Change,
        Condition,
        DataKey,
        Fault,
        Item,
        Key,
        Outgoing,
        Page,
        Received,
        SortRange,
        StoredObject,
        Write,
    )

MAX_BATCH = 10
"""Entries in one SQS or SNS batch."""
MAX_BATCH_WRITE = 25
"""Items in one DynamoDB batch write."""
MAX_MESSAGE_BYTES = 1_048_576
"""One SQS message, and one SQS batch: body and attributes together."""


class Queues(Protocol):
    """SQS. A queue is named by its URL; `url_of` finds it from an ARN without a call."""

    def url_of(self, arn: str) -> str:
        """The URL of the queue with this ARN, at this endpoint."""
        ...

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = MAX_BATCH,
        wait_seconds: int = 20,
        visibility_seconds: int | None = None,
    ) -> list[Received]:
        """Up to ten messages, waiting for the first. Empty when none came. Raises `NotFound` for no such queue."""
        ...

    async def send(self, queue: str, messages: Sequence[Outgoing]) -> list[Fault | None]:
        """Send up to ten messages in one call; one answer for each, in order, None for sent.

        Raises only when the call as a whole failed, in which case any of them may have been sent.
        """
        ...

    async def delete(self, queue: str, receipts: Sequence[str]) -> list[Fault | None]:
        """Delete up to ten messages in hand; one answer for each, in order."""
        ...

    async def set_visibility(self, queue: str, timeouts: Sequence[tuple[str, int]]) -> list[Fault | None]:
        """For up to ten (receipt, seconds from now): hide for longer, or with 0 hand back at once."""
        ...


class Tables(Protocol):
    """DynamoDB. Reads are strongly consistent unless said otherwise."""

    async def get(self, table: str, key: Key, *, consistent: bool = True) -> Item | None:
        """The item, or None."""
        ...

    async def put(self, table: str, item: Item, *, condition: Condition | None = None) -> None:
        """Write an item; raises `ConditionFailed` with the old one when the condition does not hold."""
        ...

    async def update(
        self, table: str, key: Key, change: Change, *, condition: Condition | None = None
    ) -> Item:
        """Change an item in place and return it whole as it now is; raises `ConditionFailed` with the old one."""
        ...

    async def delete(self, table: str, key: Key, *, condition: Condition | None = None) -> None:
        """Remove an item; raises `ConditionFailed` with the old one when the condition does not hold."""
        ...

    async def transact(self, writes: Sequence[Write], *, token: str | None = None) -> None:
        """All of up to 100 writes or none. `ConditionFailed` when a condition did not hold, `Transient` on conflict.

        With the same token a repeated call acts once.
        """
        ...

    async def put_batch(self, table: str, items: Sequence[Item]) -> list[Item]:
        """Write up to 25 items without conditions in one call; returns those not written, to be tried again."""
        ...

    async def query(
        self,
        table: str,
        partition: tuple[str, str | int],
        *,
        sort: SortRange | None = None,
        index: str | None = None,
        limit: int | None = None,
        descending: bool = False,
        cursor: Item | None = None,
        consistent: bool = True,
    ) -> Page:
        """One page of a partition, in sort order. A query on an index is never consistent."""
        ...

    def scan(self, table: str, *, segment: int = 0, segments: int = 1) -> AsyncIterator[list[Item]]:
        """Every item of one segment of the table, a page at a time."""
        ...


class Objects(Protocol):
    """S3."""

    async def get(self, bucket: str, key: str, *, max_bytes: int | None = None) -> StoredObject:
        """The object; `NotFound` when absent, `Permanent` with code `TooLarge` when over `max_bytes`, unread."""
        ...

    async def put(
        self, bucket: str, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write and return the new entity tag; `ConditionFailed` when another writer was first."""
        ...

    async def delete(self, bucket: str, key: str) -> None:
        """Remove the object; removing an absent one is no error."""
        ...


class Vault(Protocol):
    """KMS, for sealing: envelope encryption with a context that must match on opening."""

    async def new_data_key(self, key_id: str, *, context: dict[str, str]) -> DataKey:
        """A fresh 256-bit data key under the named key."""
        ...

    async def open_data_key(self, sealed: bytes, *, context: dict[str, str]) -> bytes:
        """The data key in the clear; `Permanent` when the seal or the context is wrong."""
        ...
