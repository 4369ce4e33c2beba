"""Every log event by name. A log line's `event` is one of these and nothing else."""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """What happened, in a word a query can filter by. Details go into fields."""

    LIBRARY = "library"
    """A line of a third-party library, kept in its `message`."""

    WORKER_STARTED = "worker.started"
    WORKER_DRAINING = "worker.draining"
    WORKER_DRAINED = "worker.drained"
    WORKER_ABORTED = "worker.aborted"
    WORKER_FAILED = "worker.failed"
    WORKER_STOPPED = "worker.stopped"
    HEALTH_LISTENING = "health.listening"
    FLUSH_FAILED = "flush.failed"
    TASK_FAILED = "task.failed"
    TASK_TOLERATED = "task.tolerated"

    QUEUE_RECEIVE_FAILED = "queue.receive_failed"
    QUEUE_DELETE_FAILED = "queue.delete_failed"
    QUEUE_VISIBILITY_FAILED = "queue.visibility_failed"
    QUEUE_RECEIPT_LOST = "queue.receipt_lost"
    QUEUE_RELEASED = "queue.released"
    HANDLER_RAISED = "handler.raised"
    MESSAGE_DEAD = "message.dead"
    DEAD_LETTER_FAILED = "message.dead_letter_failed"
    SEND_FAILED = "message.send_failed"

    COMMAND = "command"
    """The one canonical line of a command."""
    OUTBOX_WRITE_FAILED = "outbox.write_failed"
    OUTBOX_PUBLISH_FAILED = "outbox.publish_failed"
    OUTBOX_ROW_UNREADABLE = "outbox.row_unreadable"
    STREAM_READ_FAILED = "stream.read_failed"
    STREAM_TRIMMED = "stream.trimmed"
    STATS_LOST = "stats.lost"

    REFRESH_FAILED = "cache.refresh_failed"
    CACHE_LOADED = "cache.loaded"
    CACHE_REFRESHED = "cache.refreshed"
    SNAPSHOT_LOADED = "snapshot.loaded"
    SNAPSHOT_REFUSED = "snapshot.refused"
    SNAPSHOT_PUBLISHED = "snapshot.published"
    SNAPSHOT_FAILED = "snapshot.failed"
    SNAPSHOT_TOO_LARGE = "snapshot.too_large"

    LEASE_ACQUIRED = "lease.acquired"
    LEASE_LOST = "lease.lost"
    SHARD_FINISHED = "shard.finished"
    KEY_ROTATED = "key.rotated"
    ROUTE_HEALTH_CHANGED = "route.health_changed"
    BAN_PLACED = "ban.placed"
    ALERT_SENT = "alert.sent"
    ALERT_FAILED = "alert.failed"
    ALERT_UNROUTED = "alert.unrouted"
    METRICS_FAILED = "metrics.failed"

    HTTP_LISTENING = "http.listening"
    HTTP_REQUEST = "http.request"
    HTTP_FAILED = "http.failed"
