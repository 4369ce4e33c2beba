"""Commands as they are found where they came to rest, whichever form they had on their way. Pure."""

from __future__ import annotations

import msgspec

from snavio.wire.commands import Admitted, BusEvent, Escalated, Metadata
from snavio.wire.times import parse_time


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """A command that can be sent again."""

    source: str
    id: str
    timestamp: str
    target: str
    name: str
    payload: msgspec.Raw
    correlation_id: str | None = None
    schema_version: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class Filters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which commands are meant; what is not given does not matter. Times are those the producer gave."""

    since: float | None = None
    until: float | None = None
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def accept(self, command: Recovered) -> bool:
        """Whether this command is meant."""
        chosen = (
            (self.sources, command.source),
            (self.targets, command.target),
            (self.commands, command.name),
            (self.ids, command.id),
        )
        if any(wanted and found not in wanted for wanted, found in chosen):
            return False
        if self.since is None and self.until is None:
            return True
        at = parse_time(command.timestamp)
        if at is None:
            return False
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


class _Shape(msgspec.Struct):
    """Just enough of a message to tell what it is."""

    detail: msgspec.Raw = msgspec.Raw(b"")
    command: msgspec.Raw = msgspec.Raw(b"")
    replay_name: str | None = msgspec.field(default=None, name="replay-name")


def recover(body: str) -> Recovered | None:
    """The command in the body of a bus event or of a message between shield, fast and slow; None when there is none."""
    try:
        shape = msgspec.json.decode(body, type=_Shape)
        if bytes(shape.detail):
            event = msgspec.json.decode(body, type=BusEvent)
            return _of_event(event)
        if bytes(shape.command):
            return _of_admitted(msgspec.json.decode(body, type=Escalated).command)
        return _of_admitted(msgspec.json.decode(body, type=Admitted))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def replay_name(body: str) -> str | None:
    """Which archive replay brought this event back."""
    try:
        return msgspec.json.decode(body, type=_Shape).replay_name
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _of_event(event: BusEvent) -> Recovered:
    metadata: Metadata = event.detail.metadata
    command = event.detail.command
    return Recovered(
        source=event.source,
        id=metadata.id,
        timestamp=metadata.timestamp,
        target=command.target,
        name=command.name,
        payload=command.payload,
        correlation_id=metadata.correlation_id,
        schema_version=metadata.schema_version,
        traceparent=metadata.traceparent,
        tracestate=metadata.tracestate,
    )


def _of_admitted(command: Admitted) -> Recovered:
    return Recovered(
        source=command.source,
        id=command.id,
        timestamp=command.timestamp,
        target=command.target,
        name=command.name,
        payload=command.payload,
        correlation_id=command.correlation_id,
        schema_version=command.schema_version,
        traceparent=command.traceparent,
        tracestate=command.tracestate,
    )
