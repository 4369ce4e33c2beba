"""The control plane on AWS in memory, where any step can be made to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from snavio.aws.boto.session import Aws
from snavio.aws.errors import NotFound
from snavio.aws.memory.clock import ManualClock
from snavio.aws.memory.objects import MemoryObjects
from snavio.aws.memory.queues import MemoryQueues
from snavio.aws.memory.tables import MemoryTables
from snavio.aws.memory.vault import MemoryVault
from snavio.control.authority import Principal, Role
from snavio.control.control import Control, control_of
from snavio.control.emit_policy import EmitRole
from snavio.control.keys import KeyPolicy
from snavio.wire.names import Names


class Crash(Exception):  # noqa: N818
    """The process dies. Nobody catches it."""


class Steps:
    """Counts what is done to AWS, and fails at one step: before it acts, or after, when only the answer is lost."""

    def __init__(self) -> None:
        self.made = 0
        self.fail_at: int | None = None
        self.after = False

    async def take(self, act: Any) -> Any:
        step, self.made = self.made, self.made + 1
        if step == self.fail_at and not self.after:
            raise Crash("did not happen")
        answer = await act()
        if step == self.fail_at:
            raise Crash("the answer is lost")
        return answer


class SteppedTables(MemoryTables):
    steps: Steps

    async def put(self, *arguments: Any, **named: Any) -> None:
        await self.steps.take(lambda: MemoryTables.put(self, *arguments, **named))

    async def transact(self, *arguments: Any, **named: Any) -> None:
        await self.steps.take(lambda: MemoryTables.transact(self, *arguments, **named))


class FakeRoles:
    def __init__(self, steps: Steps) -> None:
        self.roles: dict[str, EmitRole] = {}
        self._steps = steps

    async def ensure(self, name: str, documents: EmitRole, *, tenant: str) -> None:
        async def act() -> None:
            self.roles[name] = documents

        await self._steps.take(act)

    async def revoke(self, name: str) -> None:
        async def act() -> None:
            if name in self.roles:
                self.roles[name] = EmitRole(self.roles[name].trust, None)

        await self._steps.take(act)

    async def remove(self, name: str) -> None:
        async def act() -> None:
            self.roles.pop(name, None)

        await self._steps.take(act)


class FakePipelines:
    def __init__(self, steps: Steps) -> None:
        self.readers: dict[str, list[str]] = {}
        self._steps = steps

    async def ensure(self, tenant: str, readers: Sequence[str]) -> None:
        async def act() -> None:
            self.readers[tenant] = list(readers)

        await self._steps.take(act)

    async def remove(self, tenant: str) -> None:
        async def act() -> None:
            self.readers.pop(tenant, None)

        await self._steps.take(act)


class FakeTargets:
    def __init__(self) -> None:
        self.queues: dict[str, Mapping[str, str]] = {}

    async def attributes(self, arn: str) -> Mapping[str, str]:
        if arn not in self.queues:
            raise NotFound("no such queue")
        return self.queues[arn]

    def add(self, arn: str, **attributes: str) -> str:
        dlq = f"{arn}-dlq"
        self.queues[dlq] = {}
        self.queues[arn] = {
            "KmsMasterKeyId": "alias/own",
            "RedrivePolicy": f'{{"deadLetterTargetArn":"{dlq}","maxReceiveCount":"3"}}',
            **attributes,
        }
        return arn


class World:
    """Everything of one installation, in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.names = Names(account="111111111111")
        self.steps = Steps()
        self.tables = SteppedTables(self.clock)
        self.tables.steps = self.steps
        names = self.names
        self.tables.create(names.registry, key=("pk", "sk"))
        self.tables.create(names.changelog, key=("pk", "seq"))
        self.tables.create(names.control, key=("pk", "sk"))
        self.roles = FakeRoles(self.steps)
        self.pipelines = FakePipelines(self.steps)
        self.targets = FakeTargets()
        self.vault = MemoryVault(self.names.secrets_key)
        self.control = self.restarted()

    def restarted(self) -> Control:
        """Another gateway on the same installation, remembering nothing."""
        aws = Aws(
            queues=MemoryQueues(self.clock),
            tables=self.tables,
            objects=MemoryObjects(),
            vault=self.vault,
            client=_no_client,
            region="us-east-1",
        )
        return control_of(
            aws,
            self.names,
            keys=KeyPolicy(),
            clock=self.clock,
            roles=self.roles,
            pipelines=self.pipelines,
            targets=self.targets,
        )


async def _no_client(service: str) -> Any:
    raise AssertionError(f"{service} is not in memory")


@pytest.fixture
def crash() -> type[Exception]:
    return Crash


@pytest.fixture
def make_world() -> type[World]:
    return World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def admin() -> Principal:
    return Principal(subject="operator", roles=frozenset({Role.ADMIN}))


def tenant_principal(tenant: str) -> Principal:
    return Principal(subject=f"tenant:{tenant}", roles=frozenset({Role.TENANT}), tenant=tenant)


@pytest.fixture
def acme() -> Principal:
    return tenant_principal("acme")


@pytest.fixture
def rival() -> Principal:
    return tenant_principal("rival")
