"""EventBridge buses, rules and archives."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from snavio.aws.errors import Permanent
from snavio.provisioning.answers import code_of, within
from snavio.provisioning.policies import document, meaning
from snavio.provisioning.reconcile import State
from snavio.provisioning.resources import Archive, Bus, Rule

_ABSENT = "ResourceNotFoundException"
_TARGET = "queue"


class BusResource:
    """The bus and its policy."""

    kind = "bus"

    def __init__(self, bus: Bus, events: Any) -> None:
        self.name = bus.name
        self._events = events
        self._policy = document(bus.policy)

    def desired(self) -> State:
        """Its policy."""
        return {"policy": meaning(self._policy)}

    async def observe(self) -> State | None:
        """The bus, if there is one."""
        try:
            found = await self._events.describe_event_bus(Name=self.name)
        except ClientError as error:
            if code_of(error) == _ABSENT:
                return None
            raise
        return {"policy": meaning(found.get("Policy") or "")}

    async def create(self) -> State:
        """Make it, without a policy yet."""
        await self._events.create_event_bus(Name=self.name)
        return {}

    async def correct(self, wrong: frozenset[str]) -> None:  # noqa: ARG002 - there is one aspect
        """Replace the whole policy."""
        await self._events.put_permission(EventBusName=self.name, Policy=json.dumps(self._policy))


class RuleResource:
    """A rule and its one target."""

    kind = "rule"

    def __init__(self, rule: Rule, events: Any) -> None:
        self.name = rule.name
        self._rule = rule
        self._events = events

    def desired(self) -> State:
        """What it matches, that it is on, and where it leads."""
        return {"pattern": self._rule.pattern, "state": "ENABLED", "target": [_reduced(self._target())]}

    async def observe(self) -> State | None:
        """The rule and all its targets."""
        try:
            found = await self._events.describe_rule(Name=self.name, EventBusName=self._rule.bus)
        except ClientError as error:
            if code_of(error) == _ABSENT:
                return None
            raise
        return {
            "pattern": json.loads(found.get("EventPattern") or "null"),
            "state": found.get("State"),
            "target": [_reduced(target) for target in await self._targets()],
        }

    async def create(self) -> State:
        """Make it without a target yet."""
        await self._put()
        return {**self.desired(), "target": []}

    async def correct(self, wrong: frozenset[str]) -> None:
        """Put the rule, put its target, and take away any other target: it would see every tenant's commands."""
        if wrong & {"pattern", "state"}:
            await self._put()
        if "target" in wrong:
            where = {"Rule": self.name, "EventBusName": self._rule.bus}
            strangers = [target["Id"] for target in await self._targets() if target["Id"] != _TARGET]
            _require(await self._events.put_targets(**where, Targets=[self._target()]))
            if strangers:
                _require(await self._events.remove_targets(**where, Ids=strangers))

    async def _put(self) -> None:
        await self._events.put_rule(
            Name=self.name,
            EventBusName=self._rule.bus,
            EventPattern=json.dumps(self._rule.pattern),
            State="ENABLED",
        )

    async def _targets(self) -> list[dict[str, Any]]:
        answer = await self._events.list_targets_by_rule(Rule=self.name, EventBusName=self._rule.bus)
        return answer.get("Targets", [])

    def _target(self) -> dict[str, Any]:
        dead = {"DeadLetterConfig": {"Arn": self._rule.dlq_arn}} if self._rule.dlq_arn else {}
        return {"Id": _TARGET, "Arn": self._rule.target_arn, **dead}


class ArchiveResource:
    """The archive of the bus."""

    kind = "archive"

    def __init__(self, archive: Archive, events: Any) -> None:
        self.name = archive.name
        self._archive = archive
        self._events = events

    def desired(self) -> State:
        """What it keeps and how long."""
        return {"pattern": self._archive.pattern, "retention": self._archive.retention_days}

    async def observe(self) -> State | None:
        """The archive, if there is one."""
        try:
            found = await self._events.describe_archive(ArchiveName=self.name)
        except ClientError as error:
            if code_of(error) == _ABSENT:
                return None
            raise
        return {
            "pattern": json.loads(found.get("EventPattern") or "null"),
            "retention": found.get("RetentionDays", 0),
        }

    async def create(self) -> State:
        """Make it whole."""
        await self._events.create_archive(EventSourceArn=self._archive.bus_arn, **self._settings())
        return self.desired()

    async def correct(self, wrong: frozenset[str]) -> None:  # noqa: ARG002 - one call sets both
        """Set pattern and retention."""
        await self._events.update_archive(**self._settings())

    def _settings(self) -> dict[str, Any]:
        return {
            "ArchiveName": self.name,
            "EventPattern": json.dumps(self._archive.pattern),
            "RetentionDays": self._archive.retention_days,
        }


def _reduced(target: dict[str, Any]) -> object:
    return (target["Id"], target["Arn"], within(target, "DeadLetterConfig", "Arn"))


def _require(answer: Any) -> None:
    # These calls answer 200 and name what they refused.
    failed: list[Any] = within(answer, "FailedEntries") or []
    if failed:
        raise Permanent(f"A target of a rule was refused: {within(failed[0], 'ErrorMessage')}.")
