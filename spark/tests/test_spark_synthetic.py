"""The synthetic feed is the same wherever and in whatever order it is made."""

from __future__ import annotations

from collections import Counter

import msgspec

from snavio.spark.synthetic import Abuser, Spec, arrivals, worker_rows
from snavio.wire.stats import DISPATCHED

START = 1_763_467_200
SPEC = Spec(start=START, windows=6, workers=5, rows_a_window=60, late=0.3, repeated=0.2)


def test_a_part_of_the_feed_is_the_same_made_alone_or_with_the_rest():
    whole = list(arrivals(SPEC))
    assert whole == list(arrivals(SPEC))
    fewer = msgspec.structs.replace(SPEC, workers=2)
    assert list(arrivals(fewer)) == [
        arrival for arrival in whole if arrival.item.worker in {fewer.worker(0), fewer.worker(1)}
    ]
    assert whole != list(arrivals(msgspec.structs.replace(SPEC, seed=2)))


def test_some_items_come_late_some_twice_and_none_is_missing():
    whole = list(arrivals(SPEC))
    copies = Counter((arrival.item.pk, arrival.item.sk) for arrival in whole)
    assert len(copies) == SPEC.windows * SPEC.workers
    assert set(copies.values()) == {1, 2}
    delays = {arrival.at - arrival.item.window for arrival in whole}
    assert min(delays) == 60
    assert max(delays) >= 180
    prompt = msgspec.structs.replace(SPEC, late=0.0, repeated=0.0)
    assert {arrival.at - arrival.item.window for arrival in arrivals(prompt)} == {60}


def test_an_abuser_has_the_share_it_was_given_and_only_while_it_floods():
    abuser = Abuser("evil/flood", ("target-1",), 5.0, start=START + 60, end=START + 120)
    spec = msgspec.structs.replace(SPEC, abusers=(abuser,))

    def share(window):
        volume = Counter()
        for row in worker_rows(spec, 0, window):
            if row.target == "target-1" and row.outcome == DISPATCHED:
                volume[row.source] += row.count
        return volume["evil/flood"] / volume.total()

    assert (share(START), share(START + 120)) == (0, 0)
    assert 0.8 < share(START + 60) < 0.9
