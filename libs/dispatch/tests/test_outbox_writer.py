"""What cannot be told holds up whom it tells of, and nobody else."""

import asyncio

import pytest

from snavio.aws.errors import Refused
from snavio.aws.memory.tables import MemoryTables
from snavio.dispatch.outbox_writer import OutboxWriter, Unrecorded
from snavio.runtime.testing import virtual_time
from snavio.wire.events import CommandDuplicate, CommandName, derived_id


def event(number):
    return CommandDuplicate(
        event_id=derived_id(str(number)),
        tenant="acme",
        emitted_at="2026-11-18T06:30:00Z",
        command_id=str(number),
        source="acme/billing",
        target="discord-bot",
        command=CommandName("notify-user"),
        timestamp="2026-11-18T06:30:00Z",
    )


class Outbox:
    """A writer on a table that refuses calls with some events in them, and leaves others unwritten."""

    def __init__(self):
        self._tables = MemoryTables()
        self._tables.create("outbox", key=("pk", "sk"))
        self.refused, self.left = set(), set()
        self.writer = OutboxWriter(self, "outbox", clock=lambda: 0.0)

    async def put_batch(self, table, items):
        about = {item["sk"]: item for item in items}
        if about.keys() & {derived_id(str(number)) for number in self.refused}:
            raise Refused("throttled")
        left = about.keys() & {derived_id(str(number)) for number in self.left}
        await self._tables.put_batch(table, [item for key, item in about.items() if key not in left])
        return [about[key] for key in left]

    def written(self):
        return {key[1] for key in self._tables.tables["outbox"].items}


@virtual_time
async def test_only_those_are_named_whose_telling_failed():
    outbox = Outbox()
    outbox.left = {3, 31}
    failed = await outbox.writer.record([(number % 10, event(number)) for number in range(40)])
    assert sorted(whom for whom, _ in failed) == [1, 3]
    assert outbox.written() == {event(number).event_id for number in range(40) if number not in outbox.left}
    assert outbox.writer.written == 38


@virtual_time
async def test_a_call_that_fails_takes_no_other_call_with_it():
    outbox = Outbox()
    outbox.refused = {30}
    failed = await outbox.writer.record([(number, event(number)) for number in range(40)])
    assert {whom for whom, _ in failed} == set(range(25, 40))
    assert all("throttled" in why for _, why in failed)


@virtual_time
async def test_callers_written_together_fail_apart():
    outbox = Outbox()
    outbox.left = {7}
    fine, hit = [event(1), event(2)], [event(6), event(7)]
    results = await asyncio.gather(*map(outbox.writer.write, (fine, hit)), return_exceptions=True)
    assert results[0] is None
    assert isinstance(results[1], Unrecorded)
    assert results[1].event_ids == {event(7).event_id}


@virtual_time
async def test_when_what_writes_breaks_nothing_counts_as_written():
    outbox = Outbox()

    async def put_batch(_table, _items):
        raise ZeroDivisionError

    outbox.put_batch = put_batch
    with pytest.raises(ZeroDivisionError):
        await outbox.writer.record([(1, event(1))])
    assert outbox.writer.written == 0
