"""The whole worker on real streams, topics and queues."""

import pytest

pytestmark = pytest.mark.aws


async def test_an_event_written_to_the_outbox_reaches_its_tenants_queue_and_leaves_the_table(bench):
    await bench.tenant("acme")
    bench.start()
    event = bench.event("acme")
    await bench.write([event])
    assert await bench.until(lambda: bench.received("acme")) == [event]

    async def gone():
        return await bench.rows_left() == 0

    await bench.until(gone)
