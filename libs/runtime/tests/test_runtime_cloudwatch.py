from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.aws.errors import Permanent, Transient
from snavio.runtime import metrics
from snavio.runtime.cloudwatch import CloudWatchMeter, CloudWatchPublisher, Datum, Total
from snavio.runtime.metrics import Metric


class Sink:
    def __init__(self) -> None:
        self.published: list[list[Datum | Total]] = []
        self.failures: list[Exception] = []

    async def publish(self, namespace, data) -> None:
        assert namespace == "Snavio"
        if self.failures:
            raise self.failures.pop(0)
        self.published.append(list(data))


@pytest.fixture
def meter() -> CloudWatchMeter:
    return CloudWatchMeter()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def publisher(meter, sink, log) -> CloudWatchPublisher:
    return CloudWatchPublisher(meter, sink, log=log, now=lambda: 1000.0)


async def test_counts_become_one_statistic_set_for_each_set_of_attributes(meter, sink, publisher):
    meter.measure(metrics.COMMANDS, 1, service="fast", outcome="delivered")
    meter.measure(metrics.COMMANDS, 3, outcome="delivered", service="fast")
    meter.measure(metrics.COMMANDS, 2, service="fast", outcome="failed", reason="acl-deny")
    await publisher.publish()
    ((delivered, failed),) = sink.published
    assert delivered == Total(
        "Snavio.Commands", "1", (("outcome", "delivered"), ("service", "fast")), 1000.0, 2, 4, 1, 3
    )
    assert (failed.total, dict(failed.dimensions)["reason"]) == (2, "acl-deny")


async def test_a_gauge_is_its_last_value(meter, sink, publisher):
    for size in (5, 9, 7):
        meter.measure(metrics.SNAPSHOT_SIZE, size, snapshot="acl")
    await publisher.publish()
    ((datum,),) = sink.published
    assert (datum.values, datum.counts) == ((7,), (1,))


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=400))
def test_a_histogram_keeps_the_distribution_within_what_a_datum_may_hold(values):
    meter = CloudWatchMeter()
    for value in values:
        meter.measure(metrics.QUEUE_LATENCY, value, queue="fast")
    data = meter.take(0.0)
    assert all(len(datum.values) <= 150 for datum in data)
    seen = sorted(
        value for datum in data for value, n in zip(datum.values, datum.counts, strict=True) for _ in range(n)
    )
    assert seen == pytest.approx(sorted(values), rel=0.026)


async def test_nothing_measured_is_nothing_published(sink, publisher):
    await publisher.publish()
    assert sink.published == []


async def test_a_call_holds_at_most_a_thousand_data(meter, sink, publisher):
    metric = Metric("Snavio.Test", "counter", "1", "", frozenset({"n"}))
    for number in range(2500):
        meter.measure(metric, 1, n=str(number))
    await publisher.publish()
    assert [len(lot) for lot in sink.published] == [1000, 1000, 500]


@pytest.mark.parametrize("error", [Transient("throttled"), Permanent("denied")])
async def test_what_could_not_be_published_goes_with_the_next_lot_and_is_then_given_up(
    meter, sink, publisher, lines, error
):
    meter.measure(metrics.STATS_LOST, 5)
    sink.failures = [error]
    await publisher.publish()
    meter.measure(metrics.STATS_LOST, 1)
    await publisher.publish()
    assert [lot[0].total for lot in sink.published] == [5, 1]

    meter.measure(metrics.STATS_LOST, 7)
    sink.failures = [error, error]
    for _ in range(3):
        await publisher.publish()
    assert len(sink.published) == 2
    assert [line["lost"] for line in lines] == [False, False, True]


def test_a_tiny_value_is_kept_as_it_is(meter):
    meter.measure(metrics.QUEUE_LATENCY, 5e-324, queue="fast")
    (datum,) = meter.take(0.0)
    assert all(math.isfinite(value) for value in datum.values)
