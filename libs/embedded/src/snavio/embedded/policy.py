"""What MiniStack's policy evaluation leaves out and Snavio's security rests on.

Each as AWS does it: the condition keys `events:source` and `events:detail-type`, with every entry of a PutEvents call
evaluated on its own; `aws:PrincipalArn` naming the role, not the session, of an assumed role; the resource policy of an
event bus, stored whole and enforced; a batch authorised as its single action; a key checked as itself when it is called
by its alias; a stream by its own ARN, and a replay by that of its archive or its own. MiniStack looks these functions up
at each request, so replacing them in their modules is enough.
"""

from __future__ import annotations

import importlib
import json
from contextvars import ContextVar
from typing import Any, NamedTuple

_PUT_EVENTS = "events:PutEvents"
_BATCHES = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "sns:PublishBatch": "sns:Publish",
}


class _Entry(NamedTuple):
    """What the policies of a PutEvents entry can ask about."""

    bus: str
    keys: tuple[tuple[str, str], ...]


_entries: ContextVar[tuple[_Entry, ...]] = ContextVar("snavio_put_events_entries", default=())


def install() -> None:
    """Close the gaps in this process. Call once, before the emulator serves."""
    _evaluate_each_entry()
    _name_the_role()
    _enforce_bus_policies()
    _authorise_batches_as_their_action()
    _name_keys_and_streams()


def _module(name: str) -> Any:
    # Untyped on purpose: these are the insides of another package, pinned to one version.
    return importlib.import_module(f"ministack.{name}")


def read_entries(body: bytes) -> tuple[_Entry, ...]:
    """The distinct (bus, condition keys) of a PutEvents request; what is not an entry is left to the service."""
    try:
        entries: Any = json.loads(body)["Entries"]
    except (ValueError, KeyError, TypeError):
        return ()
    found: dict[_Entry, None] = {}
    for entry in entries if isinstance(entries, list) else []:  # pyright: ignore[reportUnknownVariableType]
        if isinstance(entry, dict):
            fields: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
            named = (
                ("events:source", fields.get("Source")),
                ("events:detail-type", fields.get("DetailType")),
            )
            keys = tuple((key, value) for key, value in named if isinstance(value, str))
            bus = fields.get("EventBusName")
            found[_Entry(bus if isinstance(bus, str) and bus else "default", keys)] = None
    return tuple(found)


def _evaluate_each_entry() -> None:
    actions, evaluator, responses = (
        _module("core.iam_actions"),
        _module("core.iam_evaluator"),
        _module("core.responses"),
    )
    tag_context, enforce_once = actions.request_tag_context, evaluator.enforce

    def request_tag_context(service: str, iam_action: str, body: bytes, params: dict[str, Any]) -> Any:
        _entries.set(read_entries(body) if iam_action == _PUT_EVENTS else ())
        return tag_context(service, iam_action, body, params)

    def enforce(
        access_key_id: str,
        iam_action: str,
        service: str,
        region: str,
        resource_arn: str = "*",
        service_context: dict[str, Any] | None = None,
    ) -> Any:
        evaluations: list[dict[str, Any]] = []
        if iam_action == _PUT_EVENTS:
            buses = f"arn:aws:events:{region}:{responses.get_account_id()}:event-bus/"
            for entry in _entries.get():
                arn = entry.bus if entry.bus.startswith("arn:") else buses + entry.bus
                if arn == resource_arn:
                    evaluations.append({**(service_context or {}), **dict(entry.keys)})
        for context in evaluations or [service_context or {}]:
            denied = enforce_once(access_key_id, iam_action, service, region, resource_arn, context)
            if denied:
                return denied
        return None

    actions.request_tag_context = request_tag_context
    evaluator.enforce = enforce


def _name_the_role() -> None:
    evaluator, iam = _module("core.iam_evaluator"), _module("services.iam")
    resolve_key = evaluator._resolve_condition_key  # noqa: SLF001

    def resolve(key: str, context: Any) -> Any:
        # By the ARN: queue and topic policies are evaluated with every caller typed as root.
        if key.lower() == "aws:principalarn" and ":assumed-role/" in context.principal_arn:
            name = context.principal_arn.split("/")[1]
            role = iam._roles.get_scoped(context.principal_account, None, name)  # noqa: SLF001
            if role is not None:
                return role["Arn"]
        return resolve_key(key, context)

    evaluator._resolve_condition_key = resolve  # noqa: SLF001


def _enforce_bus_policies() -> None:
    evaluator, eventbridge = _module("core.iam_evaluator"), _module("services.eventbridge")
    responses = _module("core.responses")
    put_statement = eventbridge._put_permission  # noqa: SLF001
    policies = eventbridge._event_bus_policies  # noqa: SLF001

    def put_permission(data: dict[str, Any]) -> Any:
        if "Policy" not in data:
            return put_statement(data)
        policies[data.get("EventBusName", "default")] = json.loads(data["Policy"])
        return responses.json_response({})

    def event_bus_policy_for_arn(arn: str) -> tuple[Any, str] | None:
        _, _, _, region, account, resource = arn.split(":", 5)
        kind, _, bus = resource.partition("/")
        policy = policies.get_scoped(account, region, bus) if kind == "event-bus" else None
        return (policy, account) if policy else None

    eventbridge._put_permission = put_permission  # noqa: SLF001
    eventbridge.event_bus_policy_for_arn = event_bus_policy_for_arn
    evaluator._RESOURCE_POLICY_LOOKUPS["events"] = ("eventbridge", "event_bus_policy_for_arn")  # noqa: SLF001


def _authorise_batches_as_their_action() -> None:
    actions = _module("core.iam_actions")
    extract = actions.extract_iam_action

    def extract_iam_action(*arguments: Any, **named: Any) -> Any:
        action = extract(*arguments, **named)
        return _BATCHES.get(action, action)

    actions.extract_iam_action = extract_iam_action


def _name_keys_and_streams() -> None:
    actions, kms, streams = (
        _module("core.iam_actions"),
        _module("services.kms"),
        _module("services.dynamodb_streams"),
    )
    extract = actions.extract_resource_arn

    def extract_resource_arn(
        service: str, method: str, path: str, headers: Any, body: bytes, *rest: Any
    ) -> Any:
        if service == "dynamodbstreams":
            return _stream_of(body, streams._decode_iterator)  # noqa: SLF001
        if service == "events" and (replayed := _replay_of(body, *rest[-2:])):
            return replayed
        arn = extract(service, method, path, headers, body, *rest)
        if service == "kms" and ":alias/" in arn:
            key = kms._resolve_key(arn)  # noqa: SLF001
            return key["Arn"] if key else arn
        return arn

    actions.extract_resource_arn = extract_resource_arn


def _replay_of(body: bytes, region: str, account: str) -> str | None:
    """What a call about a replay is about: the archive it starts from, or the replay itself."""
    try:
        request: Any = json.loads(body)
    except ValueError:
        return None
    if not isinstance(request, dict) or "ReplayName" not in request:
        return None
    fields: dict[str, Any] = request  # pyright: ignore[reportUnknownVariableType]
    return str(
        fields.get("EventSourceArn") or f"arn:aws:events:{region}:{account}:replay/{fields['ReplayName']}"
    )


def _stream_of(body: bytes, decode_iterator: Any) -> str:
    try:
        request: Any = json.loads(body)
        if "StreamArn" in request:
            return str(request["StreamArn"])
        decoded: Any = decode_iterator(request["ShardIterator"])
        return str(decoded["arn"])
    except (ValueError, KeyError, TypeError):
        return "*"
