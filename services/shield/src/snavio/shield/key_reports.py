"""How often the use of an old key is reported: every use would drown the tenant it is meant to warn."""

from __future__ import annotations

import msgspec

from snavio.domain.screening import KeyReport

_MOST = 100_000


class KeyReports:
    """Remembers when each (source, version) was last reported, for both kinds of report."""

    def __init__(self, *, every_seconds: float) -> None:
        self._every = every_seconds
        self._next: dict[tuple[str, str, bool], float] = {}

    def due(self, source: str, report: KeyReport, now: float) -> list[KeyReport]:
        """What is to be told of this use: that the key is old, and that it is about to end where it is."""
        kinds = (False, True) if report.expiring else (False,)
        return [
            msgspec.structs.replace(report, expiring=expiring)
            for expiring in kinds
            if self._is_due((source, report.version_id, expiring), now)
        ]

    def _is_due(self, key: tuple[str, str, bool], now: float) -> bool:
        if now < self._next.get(key, 0.0):
            return False
        if len(self._next) >= _MOST:
            self._next = {known: at for known, at in self._next.items() if at > now}
        self._next[key] = now + self._every
        return True
