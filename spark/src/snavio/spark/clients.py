"""Synchronous AWS clients for Spark's driver and workers, found and authorised the standard way."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, cast

import botocore.session
from botocore.config import Config


@cache
def client_of(service: str, region: str | None = None, endpoint_url: str | None = None) -> Any:
    """A client, made once a process: loading its model costs more than a query."""
    session = cast("Any", botocore.session).get_session()
    return session.create_client(
        service,
        # botocore reads AWS_DEFAULT_REGION only; containers on AWS are given AWS_REGION.
        region_name=region or os.environ.get("AWS_REGION"),
        endpoint_url=endpoint_url,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 8}, connect_timeout=5, read_timeout=30
        ),
    )
