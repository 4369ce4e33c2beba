"""Messages, signatures, telemetry events and resource names: everything that crosses a boundary."""
