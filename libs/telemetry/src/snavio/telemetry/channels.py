"""Which events alert whom, and how: a tenant's choices, checked, and the decision for one event. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import msgspec

from snavio.wire import events
from snavio.wire.names import PLATFORM_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterable


def _tags(*kinds: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in kinds)


CRITICAL = _tags(events.CommandInvalid, events.TelemetryDropped, events.KeyExpiryImminent)
"""Events that cannot be switched off: with no channel they become a metric and a flag for operators."""
OPERATIONAL = _tags(
    events.TelemetryDeliveryFailed,
    events.TelemetryQueueUnhealthy,
    events.SnapshotFailed,
    events.SnapshotTooLarge,
)
"""Events for operators; they are always on the operators' dashboard."""
ALERTABLE = (
    CRITICAL
    | OPERATIONAL
    | _tags(
        events.CommandFailed,
        events.ExecutedAfterAclRevoked,
        events.WarmPathBan,
        events.AbuseDetected,
        events.LegacyKeyUsed,
        events.RouteHealthChanged,
        events.SkewNearLimit,
    )
)
"""Events that may alert somebody. The rest are told by telemetry alone."""

MAX_CHANNELS = 5
"""Channels a tenant may have for one event type."""
MAX_RECIPIENTS = 10
MAX_URL = 2048

_is_address = re.compile(r"[^@\s,;<>\"]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+").fullmatch


class Dashboard(msgspec.Struct, frozen=True, tag_field="type", tag="dashboard"):
    """An entry on the dashboard."""


class Email(msgspec.Struct, frozen=True, tag_field="type", tag="email"):
    """A mail with a summary as subject and JSON as body."""

    to: tuple[str, ...]


class Webhook(msgspec.Struct, frozen=True, tag_field="type", tag="webhook"):
    """An HTTPS POST of the same JSON, signed with the tenant's alert secret."""

    url: str


Channel: TypeAlias = Dashboard | Email | Webhook


class AlertSettings(msgspec.Struct, frozen=True):
    """A tenant's choice: channels for each event type it wants to be alerted of."""

    channels: dict[str, tuple[Channel, ...]] = {}


class NoAlert(msgspec.Struct, frozen=True, tag=True):
    """Nobody asked to be alerted of it."""


class Unrouted(msgspec.Struct, frozen=True, tag=True):
    """A critical event nobody would hear of: operators must."""


class AlertBy(msgspec.Struct, frozen=True, tag=True):
    """Alert by these channels."""

    channels: tuple[Channel, ...]


Routing: TypeAlias = NoAlert | Unrouted | AlertBy


def default_settings(contact_email: str | None) -> AlertSettings:
    """What a new tenant starts with: critical events on the dashboard, and by mail to its contact if there is one."""
    channels: tuple[Channel, ...] = (
        (Dashboard(), Email((contact_email,))) if contact_email else (Dashboard(),)
    )
    return AlertSettings(dict.fromkeys(sorted(CRITICAL), channels))


def route(tenant: str, event_type: str, settings: AlertSettings) -> Routing:
    """Whom an event alerts."""
    chosen = settings.channels.get(event_type, ())
    if tenant == PLATFORM_TENANT and event_type in OPERATIONAL and Dashboard() not in chosen:
        chosen = (Dashboard(), *chosen)
    if chosen:
        return AlertBy(tuple(dict.fromkeys(chosen)))
    return Unrouted() if event_type in CRITICAL else NoAlert()


def problems(settings: AlertSettings, *, insecure_webhooks: bool = False) -> list[str]:
    """What is wrong with a tenant's choice, a sentence each; empty when it can be kept."""
    found: list[str] = []
    for event_type, channels in settings.channels.items():
        if event_type not in ALERTABLE - OPERATIONAL:
            found.append(f"{event_type} cannot be alerted of.")
        if len(channels) > MAX_CHANNELS:
            found.append(f"{event_type} has {len(channels)} channels; {MAX_CHANNELS} are allowed.")
        for channel in channels:
            found += (
                f"{event_type}: {problem}"
                for problem in _channel_problems(channel, insecure=insecure_webhooks)
            )
    return found


def _channel_problems(channel: Channel, *, insecure: bool) -> Iterable[str]:
    match channel:
        case Email(to=to):
            if not 1 <= len(to) <= MAX_RECIPIENTS:
                yield f"an email channel has 1 to {MAX_RECIPIENTS} addresses."
            yield from (f"{address!r} is not a mail address." for address in to if not _is_address(address))
        case Webhook(url=url):
            problem = url_problem(url, insecure=insecure)
            if problem:
                yield problem
        case Dashboard():
            pass


def url_problem(url: str, *, insecure: bool = False) -> str | None:
    """What is wrong with the form of a webhook's URL. Where it leads is checked when it is called."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "the webhook's URL cannot be read."
    if len(url) > MAX_URL or any(character <= " " or character == "\x7f" for character in url):
        return "the webhook's URL is too long or holds blanks."
    if parts.scheme != "https" and not (insecure and parts.scheme == "http"):
        return "a webhook's URL begins with https://."
    if not parts.hostname or port == 0:
        return "the webhook's URL names no host."
    if parts.username is not None or parts.password is not None:
        return "the webhook's URL holds credentials; the signature header is how it knows us."
    return None
