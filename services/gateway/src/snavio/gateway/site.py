"""What handlers stand on: the use cases, the tokens, and what a producer is told of the installation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from snavio.control.authority import Principal
from snavio.control.control import Control
from snavio.gateway.tokens import Tokens
from snavio.wire.names import Names


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One installation as its gateway presents it."""

    control: Control
    tokens: Tokens
    names: Names
    queue_url: Callable[[str], str]
    """The URL of a queue, by its ARN."""
    replay_window_seconds: float
    poll_interval_seconds: float
    ailments: Callable[[], Sequence[str]]
    unready: Callable[[], Sequence[str]]

    def emit_role_arn(self, tenant: str) -> str:
        """The role a tenant's senders assume."""
        return self.names.role_arn(self.names.emit_role(tenant))

    def telemetry_queue_url(self, tenant: str) -> str:
        """Where a tenant's telemetry arrives."""
        return self.queue_url(self.names.queue_arn(self.names.telemetry(tenant)))


Here = NamedDependency[SkipValidation[Site]]
"""The site, injected."""
Caller = NamedDependency[SkipValidation[Principal]]
"""Who asks, injected."""
