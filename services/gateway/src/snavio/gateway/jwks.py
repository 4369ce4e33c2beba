"""An identity provider's public keys, fetched when needed and remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiohttp
import anyio
import jwt
import msgspec

from snavio.control.problems import Unavailable
from snavio.gateway.tokens import Unauthenticated

_FRESH_SECONDS = 300.0
_LEAST_PAUSE_SECONDS = 10.0
_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 1_048_576
_UNUSABLE = (
    aiohttp.ClientError,
    TimeoutError,
    msgspec.MsgspecError,
    jwt.PyJWTError,
    # What a provider's document may hold in place of keys.
    UnicodeError,
    RecursionError,
    TypeError,
    AttributeError,
)


class Jwks:
    """Keys by id. An unknown id fetches them anew, but not more often than every few seconds: anyone can send one."""

    def __init__(self, url: str, *, clock: Callable[[], float]) -> None:
        self._url = url
        self._clock = clock
        self._keys: dict[str | None, Any] = {}
        self._fetched_at = 0.0
        self._fetching = anyio.Lock()

    async def key(self, key_id: str | None) -> Any:
        """The key with this id. Raises `Unauthenticated`, or `Unavailable` while no keys can be had at all."""
        age = self._clock() - self._fetched_at
        if age > _FRESH_SECONDS or (key_id not in self._keys and age > _LEAST_PAUSE_SECONDS):
            await self._fetch()
        found = self._keys.get(key_id)
        if found is None:
            raise Unauthenticated("The token is signed with a key that is not known.")
        return found

    async def _fetch(self) -> None:
        asked_at = self._clock()
        async with self._fetching:
            if self._fetched_at >= asked_at:
                return
            try:
                keys = jwt.PyJWKSet.from_dict(await self._download()).keys
            except _UNUSABLE as error:
                if not self._keys:
                    raise Unavailable(
                        "keys-unavailable", "The identity provider's keys cannot be had at the moment."
                    ) from error
                # What is remembered stays in use: a provider's outage must not become ours.
                self._fetched_at = asked_at
                return
            self._keys = {key.key_id: key.key for key in keys}
            self._fetched_at = asked_at

    async def _download(self) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(self._url, allow_redirects=False) as answer,
        ):
            answer.raise_for_status()
            raw = await answer.content.read(_MOST_BYTES)
        return msgspec.json.decode(raw, type=dict[str, Any])
