"""The names of the platform's AWS resources, all derived from one prefix, and the patterns of names people choose."""

from __future__ import annotations

import re

import msgspec

NAME_PATTERN = r"[a-z0-9][a-z0-9-]{0,62}"
"""A tenant, a service or a target."""
COMMAND_PATTERN = r"[a-z0-9][a-z0-9._-]{0,126}"
"""The name of a command."""

PLATFORM_TENANT = "_platform"
"""Whose telemetry it is when no tenant can be named. No tenant can be called this."""

is_name = re.compile(NAME_PATTERN).fullmatch
is_command = re.compile(COMMAND_PATTERN).fullmatch
is_source = re.compile(f"{NAME_PATTERN}/{NAME_PATTERN}").fullmatch


def tenant_of(source: str) -> str:
    """The tenant part of a source, `<tenant>/<service>`."""
    return source.partition("/")[0]


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Every resource of one installation of the platform."""

    prefix: str = "snavio"
    region: str = "us-east-1"
    account: str = "000000000000"
    partition: str = "aws"

    def _named(self, what: str) -> str:
        return f"{self.prefix}-{what}"

    def _arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        return f"arn:{self.partition}:{service}:{self.region if region is None else region}:{self.account}:{resource}"

    # The bus
    @property
    def bus(self) -> str:
        """The one EventBridge bus every producer puts commands on."""
        return self._named("command-bus")

    @property
    def archive(self) -> str:
        """The archive of the bus, for replay."""
        return self._named("command-archive")

    @property
    def rule(self) -> str:
        """The rule that carries live commands to the ingress queue."""
        return self._named("commands")

    @property
    def capture_rule(self) -> str:
        """The rule that carries replayed archive events to the replay queue."""
        return self._named("replayed-commands")

    # Queues
    @property
    def ingress(self) -> str:
        """What the bus delivers, for shield."""
        return self._named("ingress")

    @property
    def fast(self) -> str:
        """What shield passed, for fast."""
        return self._named("fast")

    @property
    def slow(self) -> str:
        """What fast escalated, for slow."""
        return self._named("slow")

    @property
    def replay(self) -> str:
        """What an archive replay brought back, for the replayer."""
        return self._named("replay")

    def dlq(self, queue: str) -> str:
        """The dead-letter queue of a queue."""
        return f"{queue}-dlq"

    # Tables
    @property
    def registry(self) -> str:
        """Routes, grants, keys, bans and settings."""
        return self._named("registry")

    @property
    def changelog(self) -> str:
        """Every change of the registry, numbered."""
        return self._named("changelog")

    @property
    def limits(self) -> str:
        """Totals issued against each limit, and prefetch slots."""
        return self._named("limits")

    @property
    def dedupe(self) -> str:
        """Ids of strict commands claimed or delivered."""
        return self._named("dedupe")

    @property
    def bans(self) -> str:
        """Warm-path bans counted before they become global, and whom the auditor has told of its own."""
        return self._named("bans")

    @property
    def outbox(self) -> str:
        """Telemetry on its way to tenants."""
        return self._named("outbox")

    @property
    def stats(self) -> str:
        """Per-source dispatch counts, for the auditor."""
        return self._named("stats")

    @property
    def leases(self) -> str:
        """Leadership and stream-shard leases."""
        return self._named("leases")

    @property
    def control(self) -> str:
        """Tenants, services, alert channels and audit records."""
        return self._named("control")

    @property
    def alerts(self) -> str:
        """Alerts raised, grouped and attempted."""
        return self._named("alerts")

    # Storage and keys
    @property
    def bucket(self) -> str:
        """Snapshots, claim checks and the lake."""
        return self._named(f"platform-{self.account}-{self.region}")

    @property
    def queues_key(self) -> str:
        """Alias of the KMS key that encrypts queues."""
        return f"alias/{self.prefix}-queues"

    @property
    def secrets_key(self) -> str:
        """Alias of the KMS key that seals HMAC secrets."""
        return f"alias/{self.prefix}-secrets"

    @property
    def snapshots_key(self) -> str:
        """Alias of the asymmetric KMS key that signs snapshots."""
        return f"alias/{self.prefix}-snapshots"

    # Roles and tenants
    def role(self, service: str) -> str:
        """The task role of a service of the platform."""
        return self._named(service)

    def emit_role(self, tenant: str) -> str:
        """The role a tenant's senders assume to put commands on the bus."""
        return self._named(f"emit-{tenant}")

    def telemetry(self, tenant: str) -> str:
        """The topic and the queue that carry a tenant's telemetry."""
        return self._named(f"telemetry-{tenant}")

    # ARNs
    @property
    def bus_arn(self) -> str:
        """ARN of the bus."""
        return self._arn("events", f"event-bus/{self.bus}")

    def queue_arn(self, name: str) -> str:
        """ARN of a queue of the platform."""
        return self._arn("sqs", name)

    def topic_arn(self, name: str) -> str:
        """ARN of a topic of the platform."""
        return self._arn("sns", name)

    def table_arn(self, name: str) -> str:
        """ARN of a table of the platform."""
        return self._arn("dynamodb", f"table/{name}")

    def role_arn(self, name: str) -> str:
        """ARN of a role of the platform."""
        return self._arn("iam", f"role/{name}", region="")

    def rule_arn(self, rule: str) -> str:
        """ARN of a rule on the bus."""
        return self._arn("events", f"rule/{self.bus}/{rule}")
