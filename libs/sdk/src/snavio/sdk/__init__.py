"""What tenants touch: `snavio.sdk.producer` sends, `snavio.sdk.target` receives, `snavio.sdk.telemetry` listens."""
