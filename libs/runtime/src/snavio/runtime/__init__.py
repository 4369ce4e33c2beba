"""What every worker shares: queue loop, lifecycle, configuration, logs, telemetry, health."""
