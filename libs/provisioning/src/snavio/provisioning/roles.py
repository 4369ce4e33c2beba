"""What each service of the platform may do, and nothing else."""

from __future__ import annotations

from snavio.provisioning.policies import Conditions, Statement
from snavio.provisioning.resources import Role
from snavio.wire.names import Names

_READ = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan")
_WRITE = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
)
_CONSUME = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
)
_INSPECT = ("sqs:GetQueueAttributes", "sqs:GetQueueUrl")
# CloudWatch metrics have no ARNs; a namespace is what there is to hold to, where the endpoint tells it.
_PUBLISH_METRICS = Statement(
    sid="PublishMetrics",
    actions=("cloudwatch:PutMetricData",),
    resources=("*",),
    conditions={"StringEqualsIfExists": {"cloudwatch:namespace": ("Snavio",)}},
)
_READ_METRICS = Statement(
    sid="ReadMetrics",
    actions=("cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics"),
    resources=("*",),
)
_USE_KEY = ("kms:Decrypt", "kms:GenerateDataKey")


def task_roles(names: Names) -> tuple[Role, ...]:
    """The role of each service, of the replayer and of the auditor."""
    grants = _Grants(names)
    services = {
        "shield": grants.shield(),
        "fast": grants.fast(),
        "slow": grants.slow(),
        "outbox": grants.outbox(),
        "monitor": grants.monitor(),
        "gateway": grants.gateway(),
    }
    tasks = tuple(
        Role(
            name=names.role(service),
            description=f"What the {service} service may do.",
            trust=_trust({"Service": ("ecs-tasks.amazonaws.com",)}),
            policy=(*policy, _PUBLISH_METRICS),
        )
        for service, policy in services.items()
    )
    replayer = Role(
        name=names.role("replayer"),
        description="What an operator replaying commands may do.",
        trust=_trust({"AWS": (account_root(names),)}),
        policy=grants.replayer(),
    )
    auditor = Role(
        name=names.role("auditor"),
        description="What the Spark jobs may do.",
        # EMR Serverless serves other accounts too, and must not lend them this role.
        trust=_trust(
            {"Service": ("emr-serverless.amazonaws.com",), "AWS": (account_root(names),)},
            {"StringEqualsIfExists": {"aws:SourceAccount": (names.account,)}},
        ),
        policy=grants.auditor(),
    )
    return (*tasks, replayer, auditor)


def account_root(names: Names) -> str:
    """The ARN that stands for the account as a whole, and for its root user."""
    return f"arn:{names.partition}:iam::{names.account}:root"


def _trust(principals: dict[str, tuple[str, ...]], conditions: Conditions | None = None) -> Statement:
    return Statement(
        sid="Assume", actions=("sts:AssumeRole",), principals=principals, conditions=conditions or {}
    )


class _Grants:
    def __init__(self, names: Names) -> None:
        self._names = names

    def shield(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            self._consume(names.ingress),
            self._send(names.fast, names.dlq(names.ingress)),
            self._keys("Queues", names.queues_key),
            self._read(names.registry, names.changelog),
            self._key("OpenSecrets", ("kms:Decrypt",), names.secrets_key),
            *self._read_snapshots(),
            self._write("Report", names.outbox),
        )

    def fast(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            self._consume(names.fast),
            self._send(names.slow, names.dlq(names.fast)),
            *self._deliver(),
            self._keys("Queues", names.queues_key),
            self._read(names.registry, names.changelog),
            self._update("Reserve", names.limits),
            *self._read_snapshots(),
            self._write("Report", names.outbox, names.stats),
        )

    def slow(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            self._consume(names.slow),
            self._send(names.dlq(names.slow)),
            *self._deliver(),
            self._keys("Queues", names.queues_key),
            # A global ban is a change of the registry.
            self._update("Decide", names.limits, names.dedupe, names.bans, names.registry, names.changelog),
            *self._read_snapshots(),
            self._objects("CheckClaims", ("s3:PutObject",), "claims/*"),
            self._write("Report", names.outbox, names.stats),
        )

    def outbox(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            Statement(
                sid="FollowStream",
                actions=("dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"),
                resources=(names.table_arn(names.outbox) + "/stream/*",),
            ),
            Statement(
                sid="FindStream",
                actions=("dynamodb:DescribeTable",),
                resources=(names.table_arn(names.outbox),),
            ),
            self._update("Outbox", names.outbox, names.leases, names.alerts),
            self._read(names.control),
            Statement(sid="Publish", actions=("sns:Publish",), resources=(self._telemetry_topics(),)),
            self._keys("Queues", names.queues_key),
            self._key("SignAlerts", ("kms:Decrypt",), names.secrets_key),
            Statement(
                sid="WatchTelemetry", actions=_INSPECT, resources=(names.queue_arn(names.telemetry("*")),)
            ),
            # Queues are listed, and metrics read, by account alone.
            Statement(
                sid="FindTelemetry",
                actions=("sqs:ListQueues", "cloudwatch:GetMetricData"),
                resources=("*",),
            ),
            # Who may be written to is a matter of SES identities, which belong to the account, not to the platform.
            Statement(sid="Mail", actions=("ses:SendEmail", "ses:SendRawEmail"), resources=("*",)),
        )

    def monitor(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            Statement(sid="InspectQueues", actions=_INSPECT, resources=("arn:*:sqs:*:*:*",)),
            _READ_METRICS,
            self._update("Lead", names.leases, names.registry, names.changelog, names.control),
            self._objects("Snapshots", ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), "snavio/*"),
            self._list_bucket(),
            self._key("Sign", ("kms:Sign", "kms:GetPublicKey"), names.snapshots_key),
            self._keys("Rotate", names.secrets_key),
            self._write("Report", names.outbox),
        )

    def gateway(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            Statement(
                sid="EmitRoles",
                actions=(
                    "iam:CreateRole",
                    "iam:DeleteRole",
                    "iam:GetRole",
                    "iam:UpdateAssumeRolePolicy",
                    "iam:PutRolePolicy",
                    "iam:GetRolePolicy",
                    "iam:DeleteRolePolicy",
                    "iam:TagRole",
                ),
                resources=(names.role_arn(names.emit_role("*")),),
            ),
            Statement(
                sid="TelemetryTopics",
                actions=(
                    "sns:CreateTopic",
                    "sns:DeleteTopic",
                    "sns:GetTopicAttributes",
                    "sns:SetTopicAttributes",
                    "sns:Subscribe",
                    "sns:ListSubscriptionsByTopic",
                    "sns:TagResource",
                ),
                resources=(self._telemetry_topics(),),
            ),
            # AWS authorises this without naming the subscription.
            Statement(
                sid="TelemetrySubscriptions", actions=("sns:SetSubscriptionAttributes",), resources=("*",)
            ),
            Statement(
                sid="TelemetryQueues",
                actions=("sqs:CreateQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes", "sqs:TagQueue"),
                resources=(names.queue_arn(names.telemetry("*")),),
            ),
            # Registering a route inspects the target's queue, wherever it is.
            Statement(sid="InspectQueues", actions=_INSPECT, resources=("arn:*:sqs:*:*:*",)),
            self._update("Control", names.registry, names.changelog, names.control, names.alerts),
            self._read(names.bans, names.stats, names.limits, names.leases, names.outbox),
            self._write("Report", names.outbox),
            self._keys("IssueSecrets", names.secrets_key),
            self._key("DescribeKeys", ("kms:DescribeKey",), names.queues_key, names.secrets_key),
            *self._read_snapshots(),
            _READ_METRICS,
        )

    def replayer(self) -> tuple[Statement, ...]:
        names = self._names
        archive = names.bus_arn.replace(f"event-bus/{names.bus}", f"archive/{names.archive}")
        replays = names.bus_arn.replace(f"event-bus/{names.bus}", "replay/*")
        return (
            Statement(sid="Emit", actions=("events:PutEvents",), resources=(names.bus_arn,)),
            Statement(
                sid="Replay",
                actions=(
                    "events:StartReplay",
                    "events:DescribeReplay",
                    "events:CancelReplay",
                    "events:DescribeArchive",
                ),
                resources=(archive, replays),
            ),
            self._consume(
                names.replay, *(names.dlq(queue) for queue in (names.ingress, names.fast, names.slow))
            ),
            self._keys("Queues", names.queues_key),
            self._read(names.registry, names.changelog),
            self._key("OpenSecrets", ("kms:Decrypt",), names.secrets_key),
            self._update("Audit", names.control),
        )

    def auditor(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            Statement(sid="ReadFeed", actions=("dynamodb:Query",), resources=(names.table_arn(names.stats),)),
            # A global ban is a change of the registry.
            self._update("Ban", names.registry, names.changelog),
            self._write("Report", names.outbox),
            # What it told is kept, never read: whether it is there is for a condition to find out.
            Statement(sid="TellOnce", actions=("dynamodb:PutItem",), resources=self._tables((names.bans,))),
            self._objects("KeepLake", ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), "lake/*"),
            self._objects("LoadCode", ("s3:GetObject",), "spark/*"),
            self._list_bucket(),
        )

    # What the grants above are made of
    def _consume(self, *queues: str) -> Statement:
        return Statement(sid="Receive", actions=_CONSUME, resources=tuple(map(self._names.queue_arn, queues)))

    def _send(self, *queues: str) -> Statement:
        actions = ("sqs:SendMessage", "sqs:GetQueueUrl")
        return Statement(sid="PassOn", actions=actions, resources=tuple(map(self._names.queue_arn, queues)))

    def _deliver(self) -> tuple[Statement, ...]:
        names = self._names
        return (
            # Targets are other people's queues, in any account: each grants the send in its own policy. What only
            # the bus and the outbox may feed stays out of a dispatcher's reach.
            Statement(
                sid="Deliver",
                actions=("sqs:SendMessage",),
                not_resources=tuple(
                    map(names.queue_arn, (names.ingress, names.replay, names.telemetry("*")))
                ),
            ),
            Statement(
                sid="DeliverEncrypted",
                actions=_USE_KEY,
                resources=("arn:*:kms:*:*:key/*",),
                conditions={"StringLike": {"kms:ViaService": ("sqs.*.amazonaws.com",)}},
            ),
        )

    def _read(self, *tables: str) -> Statement:
        return Statement(sid="Read", actions=_READ, resources=self._tables(tables))

    def _write(self, sid: str, *tables: str) -> Statement:
        return Statement(sid=sid, actions=_WRITE, resources=self._tables(tables))

    def _update(self, sid: str, *tables: str) -> Statement:
        return Statement(sid=sid, actions=(*_READ, *_WRITE), resources=self._tables(tables))

    def _tables(self, tables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self._names.table_arn, tables))

    def _keys(self, sid: str, *aliases: str) -> Statement:
        return self._key(sid, _USE_KEY, *aliases)

    def _key(self, sid: str, actions: tuple[str, ...], *aliases: str) -> Statement:
        return Statement(sid=sid, actions=actions, resources=aliases)

    def _read_snapshots(self) -> tuple[Statement, ...]:
        return (
            self._objects("Snapshots", ("s3:GetObject",), "snavio/*"),
            self._list_bucket(),
            self._key("VerifySnapshots", ("kms:GetPublicKey",), self._names.snapshots_key),
        )

    def _list_bucket(self) -> Statement:
        # Without it S3 answers 403 where there is no object, and absence could not be told from refusal.
        return Statement(sid="TellAbsence", actions=("s3:ListBucket",), resources=(self._bucket_arn(),))

    def _objects(self, sid: str, actions: tuple[str, ...], pattern: str) -> Statement:
        return Statement(sid=sid, actions=actions, resources=(f"{self._bucket_arn()}/{pattern}",))

    def _bucket_arn(self) -> str:
        return f"arn:{self._names.partition}:s3:::{self._names.bucket}"

    def _telemetry_topics(self) -> str:
        return self._names.topic_arn(self._names.telemetry("*"))
