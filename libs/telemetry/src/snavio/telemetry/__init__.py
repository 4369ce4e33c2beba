"""What carries telemetry to tenants: pipelines, alert rules, health of telemetry queues, the published catalogue."""
