"""The control plane as its clients call it: JSON over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import anyio
import msgspec

from snavio.demo.platform import DemoFailedError

_TIMEOUT_SECONDS = 60


class Gateway:
    """Calls the HTTP API with one token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token

    async def call(self, method: str, path: str, body: object | None = None) -> Any:
        """One call; its answer. Raises `DemoFailedError` with the problem's own words."""
        return await anyio.to_thread.run_sync(self._call, method, path, body)

    def _call(self, method: str, path: str, body: object | None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the URL is the one the platform announced
            f"{self._url}{path}",
            method=method,
            data=None if body is None else msgspec.json.encode(body),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
                answer = response.read()
        except urllib.error.HTTPError as problem:
            raise DemoFailedError(
                f"{method} {path}: {problem.code} {problem.read().decode(errors='replace')}"
            ) from problem
        return msgspec.json.decode(answer) if answer else None
