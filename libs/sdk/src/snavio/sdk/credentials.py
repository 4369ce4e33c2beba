"""The credentials of the emit role, assumed under the sender's own name and renewed before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from aiobotocore.credentials import AioCredentials
from botocore.credentials import ReadOnlyCredentials

_RENEW_AT = 0.75
"""The part of their life after which credentials are renewed."""
_FAILED_RENEWAL_SECONDS = 5.0


class Assumed(msgspec.Struct, frozen=True):
    """What STS gave."""

    access_key: str
    frozen: ReadOnlyCredentials
    obtained_at: float
    ends_at: float

    def __repr__(self) -> str:
        return f"Assumed(ends_at={self.ends_at})"

    @property
    def renew_at(self) -> float:
        """When to ask for new ones: early enough that a failed attempt or two does no harm."""
        return self.obtained_at + _RENEW_AT * (self.ends_at - self.obtained_at)


class EmitCredentials(AioCredentials):
    """Credentials that aiobotocore asks for at each request.

    While the old ones are valid only one caller waits for the renewal, and a renewal that fails is tried again later.
    """

    def __init__(self, assume: Callable[[], Awaitable[Assumed]], now: Callable[[], float]) -> None:
        # What is fixed in the parent is never used: the signer asks for frozen credentials each time.
        super().__init__("", "", method="snavio-emit-role")  # pyright: ignore[reportUnknownMemberType]
        self._assume = assume
        self._now = now
        self._held: Assumed | None = None
        self._not_before = 0.0
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"EmitCredentials({self._held!r})"

    def forget(self, access_key: str | None) -> None:
        """The service says they are no longer good. Named by their key, so that newer ones are not thrown away."""
        if self._held is not None and access_key in (None, self._held.access_key):
            self._held = None

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Credentials good for a request made now, under the name aiobotocore's signer calls."""
        return (await self._good()).frozen

    async def key_in_use(self) -> str:
        """Which credentials a request made now would be signed with."""
        return (await self._good()).access_key

    async def _good(self) -> Assumed:
        held, now = self._held, self._now()
        if held is not None and now < held.ends_at and (now < held.renew_at or self._renewing(now)):
            return held
        async with self._lock:
            held, now = self._held, self._now()
            if held is None or now >= held.ends_at:
                self._held = held = await self._assume()
            elif now >= max(held.renew_at, self._not_before):
                try:
                    self._held = held = await self._assume()
                except Exception:  # noqa: BLE001 - whatever went wrong, the old ones still serve
                    self._not_before = now + _FAILED_RENEWAL_SECONDS
            return held

    def _renewing(self, now: float) -> bool:
        return self._lock.locked() or now < self._not_before


class FixedResolver:
    """A botocore credential resolver that always finds the same credentials."""

    def __init__(self, credentials: EmitCredentials) -> None:
        self._credentials = credentials

    async def load_credentials(self) -> EmitCredentials:
        """The credentials."""
        return self._credentials


def session_name(caller_arn: str) -> str:
    """The name a sender must assume its emit role under: that of its own role, or of its user."""
    resource = caller_arn.rpartition(":")[2].split("/")
    name = resource[1] if resource[0] == "assumed-role" and len(resource) > 1 else resource[-1]
    return name[:64]
