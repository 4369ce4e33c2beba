"""Whose account this is."""

from __future__ import annotations

import os
from typing import Any

from aiobotocore.session import AioSession
from botocore.exceptions import BotoCoreError, ClientError

from snavio.aws.errors import Permanent
from snavio.wire.names import Names


async def names_here(session: AioSession, prefix: str) -> Names:
    """The names of a platform in the account and region the session is configured for.

    Raises `Permanent` with one sentence when there is no region, or no identity AWS accepts.
    """
    configured: Any = session
    # botocore reads AWS_DEFAULT_REGION only; containers on AWS are given AWS_REGION.
    region = os.environ.get("AWS_REGION") or configured.get_config_variable("region")
    if not region:
        raise Permanent("No AWS region is configured: set AWS_REGION.")
    try:
        async with configured.create_client("sts", region_name=region) as sts:
            arn = str((await sts.get_caller_identity())["Arn"])
    except (BotoCoreError, ClientError) as error:
        raise Permanent(f"The AWS account cannot be told: {error}") from error
    _, partition, _, _, account, _ = arn.split(":", 5)
    return Names(prefix=prefix, region=region, account=account, partition=partition)
