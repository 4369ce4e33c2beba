"""What can go wrong when the embedded platform starts."""

from __future__ import annotations

from snavio.aws.errors import SnavioError


class CannotStart(SnavioError):  # noqa: N818 - reads as the sentence it prints
    """The embedded platform cannot start here; the message says why in one sentence."""
