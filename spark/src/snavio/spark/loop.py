"""A job that is run again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from snavio.spark.failures import is_around

MOST_FAILURES = 5


def every(
    seconds: float, *, clock: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
) -> Iterator[float]:
    """The times at which to run: at once, then at multiples of the period; runs that took longer are not made up."""
    while True:
        now = clock()
        yield now
        due = (now // seconds + 1) * seconds
        sleep(max(0.0, due - clock()))


def run_at(
    times: Iterable[float],
    run: Callable[[float], None],
    *,
    failed: Callable[[Exception], None],
    most_failures: int = MOST_FAILURES,
) -> None:
    """Run at each of these times, also after a run that failed for what is around it: `failed` is told why.

    Raises what ends it: the last of so many failures in a row, or at once an error of ours.
    """
    failures = 0
    for now in times:
        try:
            run(now)
        except Exception as error:  # the jobs do no harm by being done again
            failures += 1
            if failures >= most_failures or not is_around(error):
                raise
            failed(error)
        else:
            failures = 0
