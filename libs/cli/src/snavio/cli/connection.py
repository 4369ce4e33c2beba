"""Which platform a command speaks to, and as whom.

The gateway's URL and a token come from `SNAVIO_CLI_URL` and `SNAVIO_CLI_TOKEN`. Without them, a platform that `snavio up`
runs from the same directory is found by what it left in its data directory, its embedded AWS included.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.aws.errors import SnavioError
from snavio.embedded.announcement import running

if TYPE_CHECKING:
    from aiobotocore.session import AioSession

URL = "SNAVIO_CLI_URL"
TOKEN = "SNAVIO_CLI_TOKEN"
DATA_DIR = "SNAVIO_CLI_DATA_DIR"
_DEFAULT_DATA_DIR = ".snavio"


class NotConnectedError(SnavioError):
    """No platform to speak to."""


class Connection(msgspec.Struct, frozen=True):
    """A platform and an identity on it."""

    url: str
    token: str
    aws_endpoint_url: str | None = None
    """The embedded AWS, where this is an embedded platform and nothing else was said."""

    def __repr__(self) -> str:
        return f"Connection({self.url})"

    @property
    def tenant(self) -> str | None:
        """The tenant the token is for; None for an operator's. Not verified: the gateway does that."""
        try:
            payload = self.token.split(".")[1]
            claims: dict[str, Any] = msgspec.json.decode(
                base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            )
        except (IndexError, ValueError, msgspec.MsgspecError):
            return None
        tenant = claims.get("tenant")
        return tenant if isinstance(tenant, str) else None

    def session(self) -> AioSession:
        """AWS as the environment has it, or the embedded platform's with the rights of its root."""
        # Most commands speak to the gateway alone, and AWS takes half a second to import.
        from aiobotocore.session import AioSession  # noqa: PLC0415

        from snavio.embedded.root import root_session  # noqa: PLC0415

        return AioSession() if self.aws_endpoint_url is None else root_session()

    @property
    def region(self) -> str | None:
        """The region; None leaves it to the session, as AWS tools do."""
        chosen = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return chosen or ("us-east-1" if self.aws_endpoint_url else None)


def connect(environ: Mapping[str, str] = os.environ) -> Connection:
    """The platform to speak to. Raises `NotConnectedError` with how to name one."""
    url, token = environ.get(URL), environ.get(TOKEN)
    found = running(Path(environ.get(DATA_DIR) or _DEFAULT_DATA_DIR))
    if found is None or found.http_url is None:
        if not url or not token:
            missing = " and ".join(name for name, value in ((URL, url), (TOKEN, token)) if not value)
            raise NotConnectedError(f"Set {missing}, or run `snavio up` in this directory.")
        return Connection(url.rstrip("/"), token)
    if url and url.rstrip("/") != found.http_url:
        if not token:
            raise NotConnectedError(f"Set {TOKEN}: the platform at {url} is not the one running here.")
        return Connection(url.rstrip("/"), token)
    elsewhere = environ.get("AWS_ENDPOINT_URL")
    return Connection(
        found.http_url,
        token or found.admin_token,
        found.aws_endpoint_url if elsewhere in {None, "", found.aws_endpoint_url} else None,
    )
