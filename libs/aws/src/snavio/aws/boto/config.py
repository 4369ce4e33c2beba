"""How aiobotocore's clients are tuned, and why."""

from __future__ import annotations

from aiobotocore.config import AioConfig

# Above SQS's longest poll, so that a poll ends with an answer and not with a timeout of ours.
LONG_POLL_READ_TIMEOUT = 30
CONNECT_TIMEOUT = 3
_READ_TIMEOUTS = {"sqs": LONG_POLL_READ_TIMEOUT, "dynamodb": 5, "kms": 5, "s3": 30}
# Idle long polls hold a connection each; the default of ten would queue sends behind them.
_POOL = 256
_USER_AGENT = "snavio"


def port_config(service: str, *, custom_endpoint: bool) -> AioConfig:
    """For a client behind a port.

    One attempt: botocore would repeat a write whose outcome is unknown, and only `snavio.aws.retry` knows which
    writes that harms. No parameter validation: the adapters build the parameters, and the check costs a third of a call.
    """
    return AioConfig(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=_READ_TIMEOUTS[service],
        max_pool_connections=_POOL,
        parameter_validation=False,
        retries={"mode": "standard", "total_max_attempts": 1},
        s3=_addressing(custom_endpoint=custom_endpoint),
        tcp_keepalive=True,
        user_agent=_USER_AGENT,
    )


def raw_config(*, custom_endpoint: bool) -> AioConfig:
    """For a client handed out raw: rare control calls, which may be retried and should be checked."""
    return AioConfig(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=LONG_POLL_READ_TIMEOUT,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3=_addressing(custom_endpoint=custom_endpoint),
        tcp_keepalive=True,
        user_agent_extra=_USER_AGENT,
    )


def _addressing(*, custom_endpoint: bool) -> dict[str, str]:
    # The host of a custom endpoint rarely has a subdomain for each bucket.
    return {"addressing_style": "path" if custom_endpoint else "auto"}
