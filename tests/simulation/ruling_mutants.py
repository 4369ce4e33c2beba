"""Faults planted in who may do what, in bans, in what is remembered of all that, and in carrying what is told."""

from __future__ import annotations

from typing import Any

import msgspec
from simulation.planting import plant

from snavio.aws.values import SortRange
from snavio.domain.cold import Refresh, examine
from snavio.domain.fairness import FairnessWindows
from snavio.domain.freshness import Phase, Ttl
from snavio.domain.models import DispatchMode
from snavio.domain.screening import screen
from snavio.domain.warm import decide_warm
from snavio.fast import handler as fast_handler
from snavio.fast.state import WarmState
from snavio.outbox.lanes import Lanes
from snavio.outbox.progress import Progress
from snavio.outbox.sweeper import Sweeper
from snavio.registry.changelog import LOG, read_change
from snavio.registry.store import RegistryStore
from snavio.registry.view import Registry
from snavio.shield import handler as shield_handler
from snavio.slow import ban_counter
from snavio.slow import handler as slow_handler
from snavio.wire.signing import SigningKey

# What is known
_route = Registry.route


@plant(
    "a limit that a route was given later is not looked at",
    breaks="limits hold",
    seed=10,
    place=Registry,
    attribute="route",
)
def _later_limit_ignored(self: Registry, target: str, command: str, now: float) -> Any:
    found = _route(self, target, command, now)
    return found and (found if found.version == 1 else msgspec.structs.replace(found, rate_limit=None))


# What is remembered
_phase = Ttl.phase
_changes = RegistryStore.changes


@plant(
    "what has expired is still used",
    breaks="memory is bounded",
    seed=1,
    place=Ttl,
    attribute="phase",
)
def _expired_memory_used(self: Ttl, age: float) -> Phase:
    return min(Phase.STALE, _phase(self, age))


@plant(
    "a removal is read from the changelog and not applied",
    breaks="only what is allowed is delivered",
    seed=6,
    place=RegistryStore,
    attribute="changes",
)
async def _removal_skipped(self: RegistryStore, *, after: int = 0, limit: int | None = None) -> list[Any]:
    found = await _changes(self, after=after, limit=limit)
    return [
        msgspec.structs.replace(change, pk="settings", sk="nothing", after=None)
        if change.after is None
        else change
        for change in found
    ]


@plant(
    "of the changes of the registry no more than a page is read",
    breaks="memory is bounded",
    seed=9,
    place=RegistryStore,
    attribute="changes",
)
async def _one_page_read(self: RegistryStore, *, after: int = 0, limit: int | None = None) -> list[Any]:
    asked = SortRange("seq", low=after + 1)
    page = await self._tables.query(self._names.changelog, ("pk", LOG), sort=asked, limit=limit)
    return [read_change(item) for item in page.items]


@plant(
    "slow refuses on a registry older than the command",
    breaks="refusals are just",
    seed=29,
    place=slow_handler,
    attribute="examine",
)
def _refused_on_old_knowledge(escalated: Any, registry: Any, *, current: bool, now: float) -> Any:
    found = examine(escalated, registry, current=True, now=now)
    return examine(escalated, registry, current=current, now=now) if isinstance(found, Refresh) else found


# Who may send
@plant(
    "the replay window is not checked",
    breaks="only what is allowed is delivered",
    seed=13,
    place=shield_handler,
    attribute="screen",
)
def _window_unchecked(body: str, received_at: float, registry: Any, policy: Any) -> Any:
    return screen(body, received_at, registry, msgspec.structs.replace(policy, window_seconds=1e9))


@plant(
    "any signature will do",
    breaks="only what is allowed is delivered",
    seed=2,
    place=SigningKey,
    attribute="verify",
)
def _signature_unchecked(self: SigningKey, *_signed: Any) -> bool:
    return True


_key = Registry.key


@plant(
    "a key is accepted after its end",
    breaks="only what is allowed is delivered",
    seed=28,
    place=Registry,
    attribute="key",
)
def _ended_key_accepted(self: Registry, source: str, version_id: str) -> Any:
    held = _key(self, source, version_id)
    return held and msgspec.structs.replace(held, not_after=None)


@plant(
    "a ban outright is not looked at",
    breaks="only what is allowed is delivered",
    seed=9,
    place=Registry,
    attribute="ban_mode",
)
def _outright_ban_ignored(self: Registry, source: str, now: float) -> None:
    return None


@plant(
    "fast does not look at bans",
    breaks="the fast path can be shut",
    seed=17,
    place=Registry,
    attribute="ban",
)
def _ban_ignored(self: Registry, source: str, target: str, command: str, now: float) -> None:
    return None


_ban = Registry.ban


@plant(
    "a ban that ends by itself is not looked at",
    breaks="the fast path can be shut",
    seed=17,
    place=Registry,
    attribute="ban",
)
def _timed_ban_ignored(self: Registry, source: str, target: str, command: str, now: float) -> Any:
    found = _ban(self, source, target, command, now)
    return found if found is not None and found.until is None else None


@plant(
    "fast does not look at the bans it opened",
    breaks="bans are just",
    seed=6,
    place=WarmState,
    attribute="local_ban",
)
def _own_ban_ignored(self: WarmState, command: Any, now: float) -> None:
    return None


@plant(
    "nobody is told of a ban",
    breaks="bans are just",
    seed=3,
    place=fast_handler,
    attribute="ban_events",
)
def _bans_untold(*_about: Any) -> list[Any]:
    return []


@plant(
    "fast does not look at the mode the platform is in",
    breaks="the fast path can be shut",
    seed=26,
    place=fast_handler,
    attribute="decide_warm",
)
def _mode_ignored(command: Any, message_id: str, registry: Any, local: Any, mode: Any, now: float) -> Any:
    return decide_warm(command, message_id, registry, local, DispatchMode.ADAPTIVE, now)


_count = FairnessWindows.record


@plant(
    "a source that is alone is banned for dominating",
    breaks="bans are just",
    seed=4,
    place=FairnessWindows,
    attribute="record",
)
def _lone_source_banned(self: FairnessWindows, pair: Any, source: str, policy: Any, now: float) -> Any:
    found = _count(self, pair, source, policy, now)
    window = self._windows[pair]
    if found is None and window.counts[source] == window.total >= policy.min_dispatches:
        window.counts["nobody"] = 1
        window.total += 1
        found = _count(self, pair, source, policy, now)
        window.total -= 1
        del window.counts["nobody"]
    return found


@plant(
    "half of something counts as dominating it",
    breaks="bans are just",
    seed=5,
    place=FairnessWindows,
    attribute="record",
)
def _half_dominates(self: FairnessWindows, pair: Any, source: str, policy: Any, now: float) -> Any:
    return _count(self, pair, source, msgspec.structs.replace(policy, dominant_share=0.5), now)


@plant(
    "a ban is opened while another is in force",
    breaks="bans are just",
    seed=6,
    place=FairnessWindows,
    attribute="_ban",
)
def _banned_over_and_over(self: FairnessWindows, key: Any, now: float) -> None:
    return None


@plant(
    "the first warm-path ban is a ban everywhere",
    breaks="bans are just",
    seed=3,
    place=ban_counter,
    attribute="goes_global",
)
def _one_ban_goes_global(opened_at: list[float], policy: Any, now: float) -> bool:
    return True


# Carrying what is told
_publish = Lanes._publish
_take = Progress.take


@plant(
    "an event its topic refused counts as published",
    breaks="what is told arrives",
    seed=5,
    place=Lanes,
    attribute="_publish",
)
async def _refused_event_removed(self: Lanes, tenant: str, batch: Any) -> Any:
    answers = await _publish(self, tenant, batch)
    return answers and [None for _ in answers]


@plant(
    "what the stream has passed and could not be published is never swept up",
    breaks="what is told arrives",
    seed=22,
    place=Sweeper,
    attribute="sweep",
)
async def _nothing_swept(self: Sweeper) -> None:
    return


@plant(
    "the stream counts as read to where it was read, published or not",
    breaks="what is told arrives",
    seed=25,
    place=Progress,
    attribute="take",
)
def _checkpoint_before_publish(self: Progress, sequence: str, created_at: float) -> None:
    _take(self, sequence, created_at)
    self.settle(sequence)
