"""The platform's own AWS resources, as values."""

from __future__ import annotations

from typing import Literal

import msgspec

from snavio.provisioning.policies import Statement


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A KMS key, found by its alias."""

    alias: str
    description: str
    usage: Literal["seal", "sign"] = "seal"
    services: tuple[str, ...] = ()
    """AWS services that may use it on this account's behalf."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A Standard SQS queue with SSE-KMS."""

    name: str
    key: str
    visibility_seconds: int = 60
    retention_seconds: int = 345_600
    dlq: str | None = None
    max_receives: int = 20
    source: str | None = None
    """The one queue it is the dead-letter queue of."""
    policy: tuple[Statement, ...] = ()


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """An on-demand DynamoDB table with a string partition key `pk`."""

    name: str
    sort: tuple[str, Literal["S", "N"]] | None = None
    expires: bool = False
    """Whether items go at the epoch second in `expires_at`."""
    stream: bool = False
    """Whether a stream carries the new image of each item written."""
    recoverable: bool = False
    """Whether it can be restored to any point in time: the tables that cannot be made again."""


class Expiry(msgspec.Struct, frozen=True):
    """Objects under a prefix go after so many days."""

    prefix: str
    days: int


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """A private, encrypted, versioned S3 bucket."""

    name: str
    expiries: tuple[Expiry, ...] = ()
    old_versions_days: int = 1


class Bus(msgspec.Struct, frozen=True, kw_only=True):
    """An EventBridge bus and its static policy."""

    name: str
    policy: tuple[Statement, ...]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that carries what matches its pattern to one queue."""

    name: str
    bus: str
    pattern: dict[str, list[object]]
    target_arn: str
    dlq_arn: str | None = None


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    """The archive of a bus."""

    name: str
    bus_arn: str
    pattern: dict[str, list[object]]
    retention_days: int
    """0 keeps events for ever."""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """An IAM role with one inline policy."""

    name: str
    description: str
    trust: Statement
    policy: tuple[Statement, ...]


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one installation of the platform owns."""

    region: str
    account: str
    root: str
    """The ARN that stands for the account."""
    queue_arns: str
    """What the ARN of each of its queues begins with."""
    keys: tuple[Key, ...]
    queues: tuple[Queue, ...]
    tables: tuple[Table, ...]
    bucket: Bucket
    bus: Bus
    rules: tuple[Rule, ...]
    archive: Archive
    roles: tuple[Role, ...]
