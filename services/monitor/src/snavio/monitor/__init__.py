"""Queue health, snapshots and keys."""
