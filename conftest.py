"""Fixtures every member's tests may use: `aws_endpoint` and `platform`."""

pytest_plugins = ["snavio.embedded.testing"]
