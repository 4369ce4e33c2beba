"""Fixtures every member's tests may use: `aws_endpoint` and `platform`; and the profile of `make fuzz`."""

from hypothesis import settings

settings.register_profile("deep", max_examples=1000)

pytest_plugins = ["snavio.embedded.testing"]
