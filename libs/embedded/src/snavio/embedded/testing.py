"""Pytest fixtures that give tests a real AWS endpoint. The root `conftest.py` loads them.

The endpoint is the embedded AWS, one a session; or `SNAVIO_AWS_ENDPOINT_URL` when it is set; or a LocalStack container
when `SNAVIO_TEST_LOCALSTACK=1`, which needs Docker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from snavio.embedded.launch import embedded_aws

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCALSTACK_IMAGE = "localstack/localstack:4.14.0"
"""The last release that runs without a licence token."""


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an AWS endpoint. Its account is shared by all tests: use names of your own, or `platform`."""
    if given := os.environ.get("SNAVIO_AWS_ENDPOINT_URL"):
        yield given
    elif os.environ.get("SNAVIO_TEST_LOCALSTACK") == "1":
        # Only this branch needs Docker's client libraries.
        from testcontainers.localstack import LocalStackContainer  # noqa: PLC0415

        with LocalStackContainer(LOCALSTACK_IMAGE) as container:
            yield container.get_url()
    else:
        with embedded_aws(tmp_path_factory.mktemp("aws")) as url:
            yield url
