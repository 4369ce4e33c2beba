"""The one description of the platform's own resources."""

from __future__ import annotations

import msgspec

from snavio.provisioning.policies import Statement
from snavio.provisioning.resources import Archive, Bucket, Bus, Expiry, Key, Platform, Queue, Rule, Table
from snavio.provisioning.roles import account_root, task_roles
from snavio.wire.names import Names

_COMMAND = "snavio.command-sent"
_DEAD_RETENTION_SECONDS = 1_209_600
_ANYONE = {"*": ("*",)}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation may choose."""

    archive_days: int = 14
    claim_days: int = 15
    """Longer than any queue keeps a message, so a claim never outlives its payload."""
    max_receives: int = 20
    """More than any service tries by itself: the queue's own count is for what kills the worker that reads it."""


def describe(names: Names, settings: Settings | None = None) -> Platform:
    """Every resource of an installation, by its names."""
    chosen = settings or Settings()
    live: dict[str, list[object]] = {"detail-type": [_COMMAND], "replay-name": [{"exists": False}]}
    replayed: dict[str, list[object]] = {"detail-type": [_COMMAND], "replay-name": [{"exists": True}]}
    return Platform(
        region=names.region,
        account=names.account,
        root=account_root(names),
        queue_arns=names.queue_arn(""),
        keys=(
            Key(
                alias=names.queues_key,
                description="Encrypts messages in queues.",
                services=("events.amazonaws.com", "sns.amazonaws.com"),
            ),
            Key(alias=names.secrets_key, description="Seals the secrets of producers."),
            Key(alias=names.snapshots_key, description="Signs snapshots of the registry.", usage="sign"),
        ),
        queues=_queues(names, chosen),
        tables=(
            Table(name=names.registry, sort=("sk", "S"), recoverable=True),
            Table(name=names.changelog, sort=("seq", "N"), recoverable=True),
            Table(name=names.limits, expires=True),
            Table(name=names.dedupe, expires=True),
            Table(name=names.bans, sort=("sk", "S"), expires=True),
            Table(name=names.outbox, sort=("sk", "S"), expires=True, stream=True),
            Table(name=names.stats, sort=("sk", "S"), expires=True),
            Table(name=names.leases),
            Table(name=names.control, sort=("sk", "S"), expires=True, recoverable=True),
            Table(name=names.alerts, sort=("sk", "S"), expires=True),
        ),
        bucket=Bucket(name=names.bucket, expiries=(Expiry("claims/", chosen.claim_days),)),
        bus=Bus(name=names.bus, policy=_bus_policy(names)),
        rules=(
            Rule(
                name=names.rule,
                bus=names.bus,
                pattern=live,
                target_arn=names.queue_arn(names.ingress),
                dlq_arn=names.queue_arn(names.dlq(names.ingress)),
            ),
            Rule(
                name=names.capture_rule,
                bus=names.bus,
                pattern=replayed,
                target_arn=names.queue_arn(names.replay),
            ),
        ),
        archive=Archive(
            name=names.archive, bus_arn=names.bus_arn, pattern=live, retention_days=chosen.archive_days
        ),
        roles=task_roles(names),
    )


def _queues(names: Names, settings: Settings) -> tuple[Queue, ...]:
    rule, capture = names.rule_arn(names.rule), names.rule_arn(names.capture_rule)
    policies = {names.ingress: _only_from(names, names.ingress, rule)}
    working = tuple(
        Queue(
            name=name,
            key=names.queues_key,
            dlq=names.dlq(name),
            max_receives=settings.max_receives,
            policy=policies.get(name, ()),
        )
        for name in (names.ingress, names.fast, names.slow)
    )
    dead = tuple(
        Queue(
            name=names.dlq(queue.name),
            key=names.queues_key,
            retention_seconds=_DEAD_RETENTION_SECONDS,
            source=queue.name,
            # What the bus itself could not deliver joins what shield could not read.
            policy=(_from_rule(names, names.dlq(queue.name), rule),) if queue.name == names.ingress else (),
        )
        for queue in working
    )
    replay = Queue(name=names.replay, key=names.queues_key, policy=_only_from(names, names.replay, capture))
    return (*dead, *working, replay)


def _from_rule(names: Names, queue: str, rule_arn: str) -> Statement:
    return Statement(
        sid="FromTheRule",
        principals={"Service": ("events.amazonaws.com",)},
        actions=("sqs:SendMessage",),
        resources=(names.queue_arn(queue),),
        conditions={"ArnEquals": {"aws:SourceArn": (rule_arn,)}},
    )


def _only_from(names: Names, queue: str, rule_arn: str) -> tuple[Statement, ...]:
    # The source of a command is believed because the bus wrote it, so nobody else may write here. The account's root
    # stays able to, as the way out of any policy gone wrong.
    return (
        _from_rule(names, queue, rule_arn),
        Statement(
            sid="FromNobodyElse",
            effect="Deny",
            principals=_ANYONE,
            actions=("sqs:SendMessage",),
            resources=(names.queue_arn(queue),),
            conditions={
                "ArnNotLike": {"aws:SourceArn": (rule_arn,), "aws:PrincipalArn": (account_root(names),)}
            },
        ),
    )


def _bus_policy(names: Names) -> tuple[Statement, ...]:
    # Static: registering a tenant makes a role that fits it and changes nothing here.
    emitters = (names.role_arn(names.emit_role("*")), names.role_arn(names.role("replayer")))
    return (
        Statement(
            sid="Emitters",
            principals={"AWS": (account_root(names),)},
            actions=("events:PutEvents",),
            resources=(names.bus_arn,),
            conditions={"ArnLike": {"aws:PrincipalArn": emitters}},
        ),
        Statement(
            sid="NobodyElse",
            effect="Deny",
            principals=_ANYONE,
            actions=("events:PutEvents",),
            resources=(names.bus_arn,),
            conditions={"ArnNotLike": {"aws:PrincipalArn": (*emitters, account_root(names))}},
        ),
    )
