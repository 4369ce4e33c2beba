"""Reporting what slipped through: commands delivered on a remembered grant after it had been revoked."""

from __future__ import annotations

from collections.abc import Callable

from snavio.dispatch.notices import Notices
from snavio.dispatch.reports import slipped_event
from snavio.registry.changelog import Change
from snavio.registry.keeper import Keeper
from snavio.registry.uses import GrantUses


def report_slipped(keeper: Keeper, uses: GrantUses, notices: Notices, clock: Callable[[], float]) -> None:
    """Report every command that used a grant after its revocation, as soon as a refresh reads of it."""

    def on_revoked(changes: list[Change]) -> None:
        now = clock()
        notices.add([slipped_event(use, revoked_at, now) for use, revoked_at in uses.slipped(changes)])

    keeper.on_revoked(on_revoked)
