"""The platform's own AWS resources, described once and applied idempotently to any endpoint."""
