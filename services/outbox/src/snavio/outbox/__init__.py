"""Carries telemetry to tenants."""
