"""Every metric by name, with what may be said about it.

Attributes are names of bounded sets: a queue of the platform, a reason code, a path. Never a command id, and never
free text. The documents' names are kept letter for letter; the rest follow their form.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["counter", "histogram", "gauge"]


class Metric(msgspec.Struct, frozen=True):
    """One metric. A counter adds up, a histogram keeps the distribution, a gauge the last value."""

    name: str
    kind: Kind
    unit: str
    """As UCUM writes it: `1`, `s`, `ms`, `By`."""
    description: str
    attributes: frozenset[str] = frozenset()


ALL: dict[str, Metric] = {}
"""By name, for the documentation and the dashboards."""


def _metric(name: str, kind: Kind, unit: str, description: str, *attributes: str) -> Metric:
    metric = Metric(name, kind, unit, description, frozenset(attributes))
    if name in ALL:
        raise ValueError(f"metric {name} is declared twice")
    ALL[name] = metric
    return metric


# Caches
CACHE_FRESH = _metric(
    "Snavio.Cache.Usage.Fresh", "counter", "1", "Lookups answered by a fresh entry", "cache"
)
CACHE_STALE = _metric(
    "Snavio.Cache.Usage.Stale", "counter", "1", "Lookups answered by a stale entry", "cache"
)
CACHE_EXPIRED = _metric(
    "Snavio.Cache.Usage.Expired", "counter", "1", "Lookups that found an expired entry", "cache"
)
ACL_STALE = _metric("Snavio.Cache.ACL.Usage.Stale", "counter", "1", "Stale grants used")
ROUTING_STALE = _metric("Snavio.Cache.Routing.Usage.Stale", "counter", "1", "Stale routes used")
HMAC_STALE = _metric("Snavio.Cache.HMAC.Usage.Stale", "counter", "1", "Stale keys used")
ACL_REFRESH = _metric("Snavio.Cache.ACL.RefreshDuration", "histogram", "s", "Time to refresh grants")
ROUTING_REFRESH = _metric("Snavio.Cache.Routing.RefreshDuration", "histogram", "s", "Time to refresh routes")
HMAC_REFRESH = _metric("Snavio.Cache.HMAC.RefreshDuration", "histogram", "s", "Time to refresh keys")
ACL_STALE_WINDOW = _metric(
    "Snavio.Cache.ACL.StaleWindowSeconds", "histogram", "s", "Age past fresh of grants used"
)
ROUTING_STALE_WINDOW = _metric(
    "Snavio.Cache.Routing.StaleWindowSeconds", "histogram", "s", "Age past fresh of routes used"
)
HMAC_STALE_WINDOW = _metric(
    "Snavio.Cache.HMAC.StaleWindowSeconds", "histogram", "s", "Age past fresh of keys used"
)
CACHE_REFRESH_FAILED = _metric(
    "Snavio.Cache.RefreshFailure", "counter", "1", "Refreshes that failed", "cache"
)
SNAPSHOT_LOAD_FAILED = _metric(
    "Snavio.Cache.SnapshotLoadFailure",
    "counter",
    "1",
    "Snapshots refused at cold start",
    "snapshot",
    "reason",
)

# Snapshots
SNAPSHOT_GENERATED = _metric("Snavio.Snapshot.Generated", "counter", "1", "Snapshots published", "snapshot")
SNAPSHOT_FAILED = _metric(
    "Snavio.Snapshot.Failed", "counter", "1", "Snapshots not published", "snapshot", "reason"
)
SNAPSHOT_SIZE = _metric("Snavio.Snapshot.SizeBytes", "gauge", "By", "Size of the last snapshot", "snapshot")
SNAPSHOT_WRITE = _metric(
    "Snavio.Snapshot.WriteDuration", "histogram", "s", "Time to publish a snapshot", "snapshot"
)

# Write-once
DEDUP_STRICT = _metric("Snavio.Dedup.StrictModeUsage", "counter", "1", "Commands on a strict route", "path")
DEDUP_PREVENTED = _metric("Snavio.Dedup.DuplicatesPrevented", "counter", "1", "Repeats dropped", "path")
DEDUP_ESCALATIONS = _metric(
    "Snavio.Dedup.Escalations", "counter", "1", "Strict commands sent to the slow path"
)
DEDUP_LATENCY = _metric(
    "Snavio.Dedup.SlowPathLatency", "histogram", "ms", "Ingress to delivery of strict commands"
)

# Commands
COMMANDS = _metric(
    "Snavio.Commands", "counter", "1", "Commands by what became of them", "service", "outcome", "reason"
)
COMMAND_LATENCY = _metric(
    "Snavio.Commands.Latency", "histogram", "ms", "Producer's timestamp to delivery", "path"
)
ESCALATIONS = _metric(
    "Snavio.Commands.Escalations", "counter", "1", "Commands sent to the slow path", "reason"
)
DELIVERY_FAILURES = _metric(
    "Snavio.Commands.DeliveryFailures", "counter", "1", "Sends a target refused", "path"
)
MISROUTES = _metric("Snavio.Commands.Misrouted", "counter", "1", "Commands without a route", "path")
ACL_DENIALS = _metric("Snavio.Commands.Unauthorized", "counter", "1", "Commands without a grant", "path")
HMAC_FAILURES = _metric("Snavio.Hmac.Failures", "counter", "1", "Signatures refused", "reason")
SKEW = _metric("Snavio.Hmac.SkewSeconds", "histogram", "s", "Distance of sampled timestamps from now")
LEGACY_KEY_USED = _metric(
    "Snavio.Hmac.LegacyKeyUsed", "counter", "1", "Commands signed with the previous key"
)

# Limits and fairness
LIMIT_REJECTIONS = _metric(
    "Snavio.RateLimit.Rejected", "counter", "1", "Commands over a limit", "path", "reason"
)
LIMIT_SHADOWED = _metric(
    "Snavio.RateLimit.Shadowed", "counter", "1", "Commands over a limit in shadow mode", "path"
)
LEASES = _metric("Snavio.RateLimit.Leases", "counter", "1", "Leases asked for", "outcome")
BANS = _metric("Snavio.Fairness.Bans", "counter", "1", "Bans placed", "scope")
FAIRNESS_REJECTIONS = _metric("Snavio.Fairness.Rejected", "counter", "1", "Commands refused for dominance")
STATS_LOST = _metric("Snavio.Fairness.StatsLost", "counter", "1", "Minutes of counts dropped unwritten")

# Queues of the platform
QUEUE_MESSAGES = _metric(
    "Snavio.Queue.Messages", "counter", "1", "Messages by what became of them", "queue", "outcome"
)
QUEUE_LATENCY = _metric(
    "Snavio.Queue.Latency", "histogram", "ms", "Time a message waited in a queue", "queue"
)
QUEUE_HANDLING = _metric("Snavio.Queue.HandlingDuration", "histogram", "ms", "Time a handler took", "queue")
QUEUE_IN_HAND = _metric("Snavio.Queue.InHand", "gauge", "1", "Messages received and not yet settled", "queue")
QUEUE_FAULTS = _metric("Snavio.Queue.Faults", "counter", "1", "Queue calls that failed", "queue", "operation")

# Telemetry, targets and tasks
OUTBOX_WRITTEN = _metric("Snavio.Outbox.Written", "counter", "1", "Telemetry events recorded", "service")
OUTBOX_PUBLISHED = _metric("Snavio.Outbox.Published", "counter", "1", "Telemetry events published")
OUTBOX_FAILED = _metric("Snavio.Outbox.Failed", "counter", "1", "Telemetry events not published", "reason")
OUTBOX_LAG = _metric("Snavio.Outbox.Lag", "histogram", "ms", "Time from recording to publishing an event")
TELEMETRY_DROPPED = _metric(
    "Snavio.Telemetry.Dropped", "counter", "1", "Telemetry events a tenant let expire"
)
ALERTS = _metric("Snavio.Alerts", "counter", "1", "Alerts by channel", "channel", "outcome")
ALERTS_UNROUTED = _metric(
    "Snavio.Alerts.Unrouted", "counter", "1", "Alerts for which a tenant has no channel"
)
ROUTE_HEALTH = _metric("Snavio.Routes.Health", "gauge", "1", "Routes by health", "health")
ROUTE_OLDEST = _metric(
    "Snavio.Routes.OldestAge", "histogram", "s", "Age of the oldest message of target queues"
)
TASK_FAULTS = _metric(
    "Snavio.Worker.TaskFaults", "counter", "1", "Tolerated failures of background tasks", "task"
)

# The control plane
GATEWAY_REQUESTS = _metric("Snavio.Gateway.Requests", "counter", "1", "Requests by outcome", "status")
GATEWAY_DURATION = _metric("Snavio.Gateway.Duration", "histogram", "s", "Time to answer a request", "status")
