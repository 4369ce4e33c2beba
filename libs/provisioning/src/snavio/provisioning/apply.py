"""Bringing a whole platform to its description, on any endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession

from snavio.provisioning.failures import first_reason
from snavio.provisioning.kinds.buckets import BucketResource
from snavio.provisioning.kinds.events import ArchiveResource, BusResource, RuleResource
from snavio.provisioning.kinds.keys import KeyResource
from snavio.provisioning.kinds.queues import QueueResource
from snavio.provisioning.kinds.roles import RoleResource
from snavio.provisioning.kinds.tables import TableResource
from snavio.provisioning.reconcile import Change, Reconcilable, reconcile
from snavio.provisioning.resources import Platform

_SERVICES = ("dynamodb", "events", "iam", "kms", "s3", "sqs")
# IAM throttles early, and nothing here is in a hurry on AWS.
_CONFIG = AioConfig(retries={"mode": "standard", "total_max_attempts": 4}, max_pool_connections=24)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What an application of the description found and did."""

    resources: int
    changes: tuple[Change, ...]
    dry_run: bool = False


async def apply(
    platform: Platform, session: AioSession, *, endpoint_url: str | None = None, dry_run: bool = False
) -> Report:
    """Create what is missing, correct what differs, leave the rest alone. Doing it again changes nothing.

    Without an endpoint URL, AWS or whatever `AWS_ENDPOINT_URL` names. A dry run writes nothing. Raises the first
    `SnavioError`; what was done by then stays done, and the next run goes on from there.
    """
    async with AsyncExitStack() as stack:
        clients: dict[str, Any] = {}
        for service in _SERVICES:
            client: Any = session.create_client(  # pyright: ignore[reportUnknownMemberType]
                service, region_name=platform.region, endpoint_url=endpoint_url, config=_CONFIG
            )
            clients[service] = await stack.enter_async_context(client)
        return await _Application(platform, clients, dry_run=dry_run).run()


class _Application:
    def __init__(self, platform: Platform, clients: dict[str, Any], *, dry_run: bool) -> None:
        self._platform = platform
        self._clients = clients
        self._dry_run = dry_run
        self._count = 0
        self._changes: list[Change] = []

    async def run(self) -> Report:
        try:
            async with anyio.create_task_group() as group:
                for chain in (self._keys_then_roles, self._queues_then_bus, self._stores):
                    group.start_soon(chain)
        except BaseExceptionGroup as failures:
            reason = first_reason(failures)
            if reason is None:
                raise
            raise reason from failures
        changes = tuple(sorted(self._changes, key=lambda change: (change.kind, change.name)))
        return Report(resources=self._count, changes=changes, dry_run=self._dry_run)

    async def _keys_then_roles(self) -> None:
        kms, iam = self._clients["kms"], self._clients["iam"]
        platform = self._platform
        keys = {
            key.alias: KeyResource(key, kms, account=platform.account, root=platform.root)
            for key in platform.keys
        }
        await self._all(keys.values())

        def key_arn(alias: str) -> str:
            # Unknown only in a dry run that has not made the key.
            return keys[alias].arn or alias

        await self._all(RoleResource(role, iam, key_arn=key_arn) for role in platform.roles)

    async def _queues_then_bus(self) -> None:
        sqs, events = self._clients["sqs"], self._clients["events"]
        platform = self._platform

        def queues(wanted: Callable[[Any], bool]) -> Iterable[QueueResource]:
            return (
                QueueResource(queue, sqs, platform.queue_arns) for queue in platform.queues if wanted(queue)
            )

        # A queue names its dead-letter queue, and a rule its queue: each must exist by then.
        await self._all([*queues(lambda queue: queue.source), BusResource(platform.bus, events)])
        await self._all(queues(lambda queue: not queue.source))
        await self._all(
            [
                *(RuleResource(rule, events) for rule in platform.rules),
                ArchiveResource(platform.archive, events),
            ]
        )

    async def _stores(self) -> None:
        dynamodb, s3 = self._clients["dynamodb"], self._clients["s3"]
        tables = [TableResource(table, dynamodb) for table in self._platform.tables]
        await self._all([*tables, BucketResource(self._platform.bucket, s3, region=self._platform.region)])

    async def _all(self, resources: Iterable[Reconcilable]) -> None:
        async with anyio.create_task_group() as group:
            for resource in resources:
                group.start_soon(self._one, resource)

    async def _one(self, resource: Reconcilable) -> None:
        self._count += 1
        change = await reconcile(resource, dry_run=self._dry_run)
        if change is not None:
            self._changes.append(change)
