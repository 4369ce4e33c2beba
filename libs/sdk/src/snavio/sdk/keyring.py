"""The key of the moment: configuration fetched, polled for, and fetched early when there is reason to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from snavio.sdk.batching import backoff_seconds
from snavio.sdk.errors import ConfigError
from snavio.sdk.http_config import ConfigSource
from snavio.sdk.tenant_config import Signer, TenantConfig, choose_signer, only_source

_log = logging.getLogger("snavio.sdk")

_EXPIRY_MARGIN_SECONDS = 3600.0
"""How long before its key ends a producer asks whether there is a newer one."""


class Keyring:
    """A source's signing key, kept current."""

    def __init__(
        self,
        origin: ConfigSource,
        *,
        source: str | None,
        now: Callable[[], float],
        roll: Callable[[], float],
        poll_seconds: float | None = None,
        gap_seconds: float = 10.0,
    ) -> None:
        self._origin = origin
        self._wanted = source
        self._now = now
        self._roll = roll
        self._poll_seconds = poll_seconds
        # However many reasons there are to fetch early, no more often than this.
        self._gap_seconds = gap_seconds
        self._config: TenantConfig | None = None
        self._signer: Signer | None = None
        self._wake = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None
        self.source = ""
        self.fetched_at = 0.0

    @property
    def config(self) -> TenantConfig:
        """The configuration last fetched."""
        if self._config is None:
            raise ConfigError("The tenant configuration has not been fetched yet.")
        return self._config

    def signer(self) -> Signer:
        """The key to sign with now. Raises `ConfigError` when none is valid any more."""
        now = self._now()
        if self._signer is None or now >= self._signer.ends_at:
            self._signer = choose_signer(self.config, self.source, now)
        return self._signer

    async def refresh(self) -> None:
        """Fetch the configuration and use what it says from now on; callers at the same time share one fetch."""
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch())
        await asyncio.shield(self._fetching)

    def refresh_soon(self) -> None:
        """There is reason to believe that a newer key exists."""
        self._wake.set()

    async def run(self) -> None:
        """Poll for as long as the producer lives. A failed poll leaves everything as it is and is tried again."""
        failures = 0
        while True:
            wait = (
                backoff_seconds(failures, self._roll(), shortest=1.0, longest=300.0)
                if failures
                else self._pause()
            )
            await self._sleep(wait)
            try:
                await self.refresh()
                failures = 0
            except Exception as error:  # noqa: BLE001 - a token function of the tenant's may raise anything
                failures += 1
                _log.warning("The tenant configuration could not be refreshed: %s", error)

    async def _fetch(self) -> None:
        # Read the clock first: an answer is as good as the moment it was asked for.
        asked_at = self._now()
        config = await self._origin.fetch()
        source = only_source(config, self.source or self._wanted)
        signer = choose_signer(config, source, asked_at)
        if self._signer is not None and self._signer.version_id != signer.version_id:
            _log.info("Signing with key %s from now on", signer.version_id)
        self._config, self.source, self._signer, self.fetched_at = config, source, signer, asked_at

    def _pause(self) -> float:
        usual = self._poll_seconds or self.config.poll_interval_seconds
        left = (self._signer.ends_at if self._signer else float("inf")) - self._now()
        # A tenth earlier or not, by chance, so that producers started together do not ask together.
        return max(1.0, min(usual, max(left - _EXPIRY_MARGIN_SECONDS, self._gap_seconds))) * (
            1.0 - 0.1 * self._roll()
        )

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
                since = self._now() - self.fetched_at
                await asyncio.sleep(max(0.0, self._gap_seconds - since))
        except TimeoutError:
            pass
        self._wake.clear()
