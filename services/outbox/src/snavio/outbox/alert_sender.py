"""Turns bursts that are due into alerts and delivers them, by one worker of the fleet at a time.

It shares nothing with publishing but the process: its state is in the alerts table, its calls are bounded in time and
number, and no tenant has more than a few under way.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import anyio
import msgspec

from snavio.aws.errors import SnavioError
from snavio.runtime import metrics
from snavio.runtime.log_events import LogEvent
from snavio.runtime.telemetry import SILENT
from snavio.telemetry.alerts import alert_of
from snavio.telemetry.bursts import Burst, BurstSettings, Close, Tell, Wait, step
from snavio.telemetry.channels import (
    CRITICAL,
    AlertBy,
    Channel,
    Dashboard,
    Email,
    NoAlert,
    Unrouted,
    Webhook,
    route,
)
from snavio.telemetry.deliveries import (
    Delivery,
    DeliverySettings,
    DeliveryState,
    Result,
    Sent,
    TryAgain,
    attempted,
    next_due,
    reached_somebody,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from snavio.outbox.alert_choices import AlertChoices
    from snavio.outbox.mail import Mails
    from snavio.outbox.webhook import Webhooks
    from snavio.runtime.leadership import Leadership
    from snavio.runtime.logs import Log
    from snavio.runtime.telemetry import Telemetry
    from snavio.telemetry.alert_log import AlertLog, RaisedAlert
    from snavio.telemetry.alerts import Alert


class SenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How alerts are sent."""

    bursts: BurstSettings = BurstSettings()
    deliveries: DeliverySettings = DeliverySettings()
    tick_seconds: float = 1.0
    alerts_at_once: int = 64
    alerts_per_tenant: int = 2


class AlertSender:
    """Raises and delivers alerts."""

    def __init__(
        self,
        log_book: AlertLog,
        choices: AlertChoices,
        mails: Mails,
        webhooks: Webhooks,
        leadership: Leadership,
        *,
        now: Callable[[], float],
        log: Log,
        telemetry: Telemetry = SILENT,
        settings: SenderSettings | None = None,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._log_book = log_book
        self._choices = choices
        self._mails = mails
        self._webhooks = webhooks
        self._leadership = leadership
        self._now = now
        self._log = log
        self._telemetry = telemetry
        self._settings = settings or SenderSettings()
        self._roll = roll
        self._under_way: set[str] = set()
        self._by_tenant: Counter[str] = Counter()

    async def run(self) -> None:
        """Raise and deliver what is due, until cancelled."""
        async with anyio.create_task_group() as deliveries:
            while True:
                try:
                    if await self._leadership.held():
                        await self.raise_due()
                        await self._start_due(deliveries)
                except SnavioError as error:
                    self._log.warning(LogEvent.ALERT_FAILED, error=error)
                await anyio.sleep(self._settings.tick_seconds)

    async def raise_due(self) -> None:
        """Raise an alert for every burst that is due, and forget those that are over."""
        for burst in await self._log_book.bursts():
            match step(burst, self._now(), self._settings.bursts):
                case Wait():
                    pass
                case Close():
                    await self._log_book.close(burst)
                case Tell() as tell:
                    await self._raise(burst, tell)

    async def deliver_due(self) -> None:
        """Make every delivery that is due now, and wait for them."""
        async with anyio.create_task_group() as deliveries:
            await self._start_due(deliveries)

    async def _raise(self, burst: Burst, tell: Tell) -> None:
        now = self._now()
        key = burst.key
        alert = alert_of(burst, tell.count, now)
        channels: tuple[Channel, ...] = ()
        match route(key.tenant, key.event_type, await self._choices.of(key.tenant)):
            case AlertBy(channels=channels):
                pass
            case NoAlert():
                # The tenant changed its mind after the burst began.
                await self._log_book.close(burst)
                return
            case Unrouted():
                await self._flag(alert, "no channel")
        deliveries = [Delivery(channel=channel) for channel in channels]
        await self._log_book.raise_alert(burst, tell, alert, deliveries, now)

    async def _start_due(self, deliveries: anyio.abc.TaskGroup) -> None:
        # What is under way now may be over before the answer comes, which then still shows it as due.
        under_way = set(self._under_way)
        for raised in await self._log_book.due(self._now()):
            tenant = raised.pk
            if (
                raised.sk in under_way
                or len(self._under_way) >= self._settings.alerts_at_once
                or self._by_tenant[tenant] >= self._settings.alerts_per_tenant
            ):
                continue
            self._under_way.add(raised.sk)
            self._by_tenant[tenant] += 1
            deliveries.start_soon(self._deliver, raised)

    async def _deliver(self, raised: RaisedAlert) -> None:
        try:
            alert = raised.content
            now = self._now()
            made = [
                await self._attempt(alert, delivery)
                if delivery.state is DeliveryState.PENDING and delivery.due_at <= now
                else delivery
                for delivery in raised.deliveries
            ]
            over = next_due(made) is None
            unheard = over and not reached_somebody(made) and alert.event_type in CRITICAL
            if unheard:
                await self._flag(alert, "no channel took it")
            await self._log_book.record(
                msgspec.structs.replace(raised, deliveries=tuple(made), flagged=unheard)
            )
        except SnavioError as error:
            self._log.warning(LogEvent.ALERT_FAILED, error=error, tenant=raised.pk)
        finally:
            self._under_way.discard(raised.sk)
            self._by_tenant[raised.pk] -= 1
            if not self._by_tenant[raised.pk]:
                del self._by_tenant[raised.pk]

    async def _attempt(self, alert: Alert, delivery: Delivery) -> Delivery:
        try:
            result = await self._send(alert, delivery.channel)
        except Exception as error:  # noqa: BLE001 - where a channel leads is a tenant's choice: it must not end a worker
            self._log.error(LogEvent.ALERT_FAILED, error=error, tenant=alert.tenant, alert=alert.alert_id)
            result = TryAgain(f"unexpected: {type(error).__name__}")
        kind = str(delivery.channel.__struct_config__.tag)
        after = attempted(
            delivery, result, now=self._now(), roll=self._roll(), settings=self._settings.deliveries
        )
        self._telemetry.measure(metrics.ALERTS, 1, channel=kind, outcome=after.attempts[-1].outcome)
        if isinstance(result, Sent):
            self._log.info(LogEvent.ALERT_SENT, tenant=alert.tenant, channel=kind, alert=alert.alert_id)
        else:
            self._log.warning(
                LogEvent.ALERT_FAILED,
                tenant=alert.tenant,
                channel=kind,
                alert=alert.alert_id,
                reason=result.detail,
                attempts=len(after.attempts),
            )
        return after

    async def _send(self, alert: Alert, channel: Channel) -> Result:
        match channel:
            case Dashboard():
                return Sent("on the dashboard")
            case Email():
                return await self._mails.send(alert, channel)
            case Webhook():
                return await self._webhooks.send(alert, channel)

    async def _flag(self, alert: Alert, reason: str) -> None:
        """A critical event nobody hears of becomes a metric and a flag that operators follow up."""
        self._telemetry.measure(metrics.ALERTS_UNROUTED, alert.count)
        self._log.error(
            LogEvent.ALERT_UNROUTED, tenant=alert.tenant, event_type=alert.event_type, reason=reason
        )
        await self._log_book.flag(alert, reason, self._now())
