"""The AsyncAPI document of Snavio: the bus, telemetry, and what targets receive, from the same types."""

from __future__ import annotations

from typing import Any

from snavio.telemetry.schemas import components
from snavio.wire.commands import COMMAND_SENT
from snavio.wire.events import event_types
from snavio.wire.names import NAME_PATTERN, Names

_SCHEMA = "#/components/schemas/{name}"
_NAMES = Names()


def asyncapi() -> dict[str, Any]:
    """The document, with the default names of resources."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Snavio",
            "version": "1.0",
            "description": "A command bus for many tenants on AWS: what producers put on the bus, what targets "
            "receive, and what tenants are told about it.",
        },
        "defaultContentType": "application/json",
        "channels": _channels(),
        "operations": _operations(),
        "components": {"messages": _messages(), "schemas": components(_SCHEMA)},
    }


def _channels() -> dict[str, Any]:
    return {
        "bus": {
            "address": _NAMES.bus,
            "description": "The EventBridge bus. A command is the `Detail` of an entry with `Source` "
            f"`<tenant>/<service>` and `DetailType` `{COMMAND_SENT}`.",
            "messages": {"commandSent": {"$ref": "#/components/messages/commandSent"}},
        },
        "target": {
            "address": "{queue}",
            "description": "The target's own Standard SQS queue, as registered with the route.",
            "parameters": {"queue": {"description": "The ARN of the queue."}},
            "messages": {"commandDelivered": {"$ref": "#/components/messages/commandDelivered"}},
        },
        "telemetry": {
            "address": _NAMES.telemetry("{tenant}"),
            "description": "A tenant's SNS topic, and the SQS queue of the same name subscribed to it with raw "
            "delivery. Subscriptions may filter by the message attributes.",
            "parameters": {"tenant": {"description": f"The tenant, `{NAME_PATTERN}`."}},
            "messages": {
                _camel(name): {"$ref": f"#/components/messages/{_camel(name)}"} for name in event_types()
            },
        },
    }


def _operations() -> dict[str, Any]:
    return {
        "receiveCommands": {
            "action": "receive",
            "channel": {"$ref": "#/channels/bus"},
            "summary": "Take commands from producers.",
        },
        "deliverCommands": {
            "action": "send",
            "channel": {"$ref": "#/channels/target"},
            "summary": "Deliver commands that passed every check, at least once.",
        },
        "reportTelemetry": {
            "action": "send",
            "channel": {"$ref": "#/channels/telemetry"},
            "summary": "Tell a tenant what became of its commands, at least once; `event_id` tells repeats apart.",
        },
    }


def _messages() -> dict[str, Any]:
    text = {"type": "string"}
    told = {
        _camel(name): {
            "name": name,
            "summary": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
            "headers": {
                "type": "object",
                "properties": {"event_type": {"const": name}, "tenant": text, "source": text},
                "required": ["event_type", "tenant"],
            },
            "payload": {"$ref": _SCHEMA.format(name=kind.__name__)},
        }
        for name, kind in event_types().items()
    }
    return {
        "commandSent": {
            "name": COMMAND_SENT,
            "summary": "A command as a producer sends it.",
            "payload": {"$ref": _SCHEMA.format(name="CommandSent")},
        },
        "commandDelivered": {
            "name": "snavio.command-delivered",
            "summary": "A command as its target receives it.",
            "headers": {
                "type": "object",
                "properties": dict.fromkeys(
                    ("snavio.id", "snavio.source", "snavio.command", "traceparent"), text
                ),
                "required": ["snavio.id", "snavio.source", "snavio.command"],
            },
            "payload": {"$ref": _SCHEMA.format(name="Delivered")},
        },
        **told,
    }


def _camel(name: str) -> str:
    first, *rest = name.removeprefix("snavio.").replace("-", "_").replace(".", "_").split("_")
    return first + "".join(word.capitalize() for word in rest)
