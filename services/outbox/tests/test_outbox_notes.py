"""Alerts are noted durably, apart from publishing, and each event once: in memory and virtual time."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import msgspec

from snavio.aws.errors import Transient
from snavio.aws.memory.tables import MemoryTables
from snavio.aws.memory.vault import MemoryVault
from snavio.outbox.alert_choices import AlertChoices
from snavio.outbox.alert_sender import AlertSender, SenderSettings
from snavio.outbox.carrier import Carrier
from snavio.outbox.notebook import Notebook
from snavio.outbox.values import Fate, StoredRow
from snavio.runtime.logs import recording_log
from snavio.runtime.testing import virtual_now, virtual_time
from snavio.telemetry.alert_log import AlertLog
from snavio.telemetry.alert_store import AlertStore
from snavio.telemetry.bursts import ANY_TARGET, BurstSettings
from snavio.telemetry.channels import AlertSettings, Dashboard, Webhook
from snavio.telemetry.deliveries import DeliverySettings
from snavio.wire.names import Names

INVALID, FAILED, DELIVERED = "snavio.command.invalid", "snavio.command.failed", "snavio.command.delivered"


class FailingTables(MemoryTables):
    failing = False

    async def update(self, *arguments, **named):
        if self.failing:
            raise Transient("the table does not answer")
        return await super().update(*arguments, **named)


class Bench:
    def __init__(self):
        names = Names()
        self.tables = FailingTables(virtual_now)
        self.tables.create(names.alerts, key=["pk", "sk"])
        self.tables.create(names.control, key=["pk", "sk"])
        self.store = AlertStore(self.tables, MemoryVault(names.secrets_key), names)
        log = recording_log([])
        self.log_book = AlertLog(self.tables, names.alerts)
        self.notebook = Notebook(
            self.log_book,
            AlertChoices(self.store, now=virtual_now, log=log),
            now=virtual_now,
            log=log,
            bursts=BurstSettings(),
        )
        self.carrier = Carrier(self, self.notebook, self, now=virtual_now, log=log)
        self.fate = Fate.DELIVERED
        self.offered, self.annotated, self.settled = [], [], []

    def offer(self, row, done, *, wanted):
        self.offered.append(row.sk)
        done(self.fate)

    async def annotate(self, row, *, alerted, refused_at=0):
        self.annotated.append((row.sk, alerted, bool(refused_at)))

    def carry(self, number, kind=INVALID, target="bot", **fields):
        body = msgspec.json.encode({"event": kind, "target": target}).decode()
        row = StoredRow("acme#0", str(number), "acme", kind, "acme/s", body, 1000, 0, **fields)
        self.carrier.carry(row, lambda: self.settled.append(row.sk))

    @asynccontextmanager
    async def running(self):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.notebook.run)
            tasks.start_soon(self.carrier.run)
            yield
            tasks.cancel_scope.cancel()


@virtual_time
async def test_an_event_is_published_at_once_and_settled_only_when_its_alert_is_written_down():
    bench = Bench()
    async with bench.running():
        bench.tables.failing = True
        bench.carry(1)
        bench.carry(2, DELIVERED)
        assert bench.offered == ["1", "2"]
        await anyio.sleep(5)
        assert bench.settled == ["2"]
        bench.tables.failing = False
        await anyio.sleep(1)
    assert bench.settled == ["2", "1"]
    (burst,) = await bench.log_book.bursts()
    assert (burst.key.target, burst.count) == ("bot", 1)


@virtual_time
async def test_a_row_that_stays_is_marked_so_that_its_alert_is_not_raised_again():
    bench = Bench()
    async with bench.running():
        bench.fate = Fate.LEFT
        bench.carry(1)
        bench.carry(2, DELIVERED)
        bench.carry(3, alerted=1)
        bench.fate = Fate.REFUSED
        bench.carry(4, DELIVERED)
        await anyio.sleep(1)
    assert sorted(bench.annotated) == [("1", True, False), ("4", False, True)]
    assert sorted(bench.settled) == ["1", "2", "3", "4"]
    (burst,) = await bench.log_book.bursts()
    assert burst.count == 1


class Exploding:
    async def send(self, alert, channel):
        raise RuntimeError("nobody thought of this")


@virtual_time
async def test_whatever_a_channel_does_is_recorded_and_ends_nothing_and_a_burst_is_told_by_one_worker_only():
    bench = Bench()
    await bench.store.choose("acme", AlertSettings({INVALID: (Webhook("https://hooks.example/"),)}))
    async with bench.running():
        bench.carry(1)
        await anyio.sleep(10)
    senders = [
        AlertSender(
            bench.log_book,
            bench.notebook._choices,
            Exploding(),
            Exploding(),
            None,
            now=virtual_now,
            log=recording_log([]),
            settings=SenderSettings(deliveries=DeliverySettings(attempts=2)),
        )
        for _ in range(2)
    ]
    async with anyio.create_task_group() as both:
        for sender in senders:
            both.start_soon(sender.raise_due)
    for _ in range(3):
        await senders[0].deliver_due()
        await anyio.sleep(60)
    (raised,) = await bench.log_book.raised("acme")
    (delivery,) = raised.deliveries
    assert [attempt.detail for attempt in delivery.attempts] == ["unexpected: RuntimeError"] * 2
    assert raised.flagged
    assert [flag["reason"] for flag in await bench.log_book.flags()] == ["no channel took it"]


@virtual_time
async def test_a_thousand_events_cost_one_write_and_events_nobody_asked_about_none():
    bench = Bench()
    async with bench.running():
        for number in range(1000):
            bench.carry(number)
            bench.carry(number, FAILED)
        await anyio.sleep(1)
    (burst,) = await bench.log_book.bursts()
    assert (burst.key.event_type, burst.count) == (INVALID, 1000)
    assert len(bench.settled) == 2000


@virtual_time
async def test_a_tenant_that_asks_is_heard_within_a_minute():
    bench = Bench()
    async with bench.running():
        bench.carry(1, FAILED)
        await anyio.sleep(1)
        await bench.store.choose("acme", AlertSettings({FAILED: (Dashboard(),)}))
        await anyio.sleep(60)
        bench.carry(2, FAILED)
        await anyio.sleep(1)
    assert [burst.count for burst in await bench.log_book.bursts()] == [1]


@virtual_time
async def test_endless_targets_share_a_burst_instead_of_filling_the_table():
    bench = Bench()
    async with bench.running():
        for number in range(500):
            bench.carry(number, target=f"made-up-{number}")
        await anyio.sleep(1)
    bursts = await bench.log_book.bursts()
    assert len(bursts) == 21
    assert sum(burst.count for burst in bursts) == 500
    assert max(bursts, key=lambda burst: burst.count).key.target == ANY_TARGET
