"""Bringing one resource to its described state, whatever state it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from snavio.aws.errors import Permanent, SnavioError, Transient
from snavio.provisioning.answers import code_of, message_of

State: TypeAlias = Mapping[str, object]
"""The aspects of a resource, by name, in forms that are equal when they mean the same."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not as described."""

    kind: str
    name: str
    action: Literal["create", "correct"]
    aspects: tuple[str, ...] = ()
    """What was corrected."""


class Reconcilable(Protocol):
    """A resource somewhere in AWS and what it should be."""

    @property
    def kind(self) -> str:
        """What sort of resource it is."""
        ...

    @property
    def name(self) -> str:
        """Its name within its kind."""
        ...

    def desired(self) -> State:
        """Every aspect that is ours to decide."""
        ...

    async def observe(self) -> State | None:
        """The same aspects as they are, or None when the resource does not exist."""
        ...

    async def create(self) -> State:
        """Make it, and say which aspects already are as desired."""
        ...

    async def correct(self, wrong: frozenset[str]) -> None:
        """Bring the named aspects to what is desired."""
        ...


async def reconcile(resource: Reconcilable, *, dry_run: bool) -> Change | None:
    """Make the resource as described; None when it already was. A dry run only says what would change."""
    try:
        return await _reconcile(resource, dry_run=dry_run)
    except SnavioError:
        raise
    except ClientError as error:
        raise Permanent(
            f"The {resource.kind} {resource.name} could not be provisioned: {message_of(error)}",
            code=code_of(error),
        ) from error
    except BotoCoreError as error:
        raise Transient(
            f"AWS could not be reached for the {resource.kind} {resource.name}: {error}"
        ) from error


async def _reconcile(resource: Reconcilable, *, dry_run: bool) -> Change | None:
    desired = resource.desired()
    observed = await resource.observe()
    if observed is None:
        if not dry_run:
            wrong = _differing(desired, await resource.create())
            if wrong:
                await resource.correct(wrong)
        return Change(kind=resource.kind, name=resource.name, action="create")
    wrong = _differing(desired, observed)
    if not wrong:
        return None
    if not dry_run:
        await resource.correct(wrong)
    return Change(kind=resource.kind, name=resource.name, action="correct", aspects=tuple(sorted(wrong)))


def _differing(desired: State, observed: State) -> frozenset[str]:
    return frozenset(aspect for aspect, value in desired.items() if observed.get(aspect) != value)
