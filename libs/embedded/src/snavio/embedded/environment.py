"""What a service finds in its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from snavio.wire.names import Names

# Identities of the person at the keyboard, which would win over the task role's.
_PERSONAL = frozenset(
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"}
)
_POLL_SECONDS = 1
"""A stop waits for open polls: short ones make it quick, and cost nothing here."""


def service_environment(
    base: Mapping[str, str], names: Names, *, endpoint_url: str, own: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a service: the caller's, without its identity, on the embedded AWS, with the service's own."""
    inherited = {name: value for name, value in base.items() if name not in _PERSONAL}
    unproxied = [*filter(None, [base.get("NO_PROXY") or base.get("no_proxy")]), "127.0.0.1", "localhost"]
    return {
        "SNAVIO_WAIT_SECONDS": str(_POLL_SECONDS),
        **inherited,
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_REGION": names.region,
        "AWS_DEFAULT_REGION": names.region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": ",".join(unproxied),
        "no_proxy": ",".join(unproxied),
        "SNAVIO_PREFIX": names.prefix,
        "SNAVIO_ACCOUNT": names.account,
        **own,
    }
