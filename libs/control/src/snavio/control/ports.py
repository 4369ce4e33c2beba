"""What the control plane needs of AWS beside the shared ports, as narrow as it uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from snavio.control.emit_policy import EmitRole


class EmitRoles(Protocol):
    """IAM, for emit roles alone. Every operation may be repeated."""

    async def ensure(self, name: str, documents: EmitRole, *, tenant: str) -> None:
        """Make the role say exactly this. Raises `Invalid` when IAM does not accept a sender."""
        ...

    async def revoke(self, name: str) -> None:
        """Take every permission from the role, and so from its sessions, at once."""
        ...

    async def remove(self, name: str) -> None:
        """Remove the role; no error when it is gone."""
        ...


class Pipelines(Protocol):
    """A tenant's telemetry: topic, queue and dead-letter queue. Every operation may be repeated."""

    async def ensure(self, tenant: str, readers: Sequence[str]) -> None:
        """Make the pipeline, readable by these roles alone."""
        ...

    async def remove(self, tenant: str) -> None:
        """Remove the pipeline; no error when it is gone."""
        ...


class TargetQueues(Protocol):
    """SQS, for looking at other people's queues."""

    async def attributes(self, arn: str) -> Mapping[str, str]:
        """Every attribute of a queue. Raises `NotFound`, `Permanent` when access is denied, `Transient`."""
        ...
