"""Contenders on canned endpoints, each with all the messages it can take while it is its turn."""

from __future__ import annotations

import statistics
import time

import msgspec
from figures import Sizes
from processes import Canned, Process


class Contender(msgspec.Struct, frozen=True):
    """A process that consumes a queue."""

    process: Process
    endpoint: Canned
    queue: str


class Turn(msgspec.Struct, frozen=True):
    """What came of a contender's turn, or the medians of several."""

    rate: float
    """Messages settled a second."""
    cpu: float
    """Microseconds of the contender's CPU a message."""
    busy: float
    """The part of a core it used."""
    endpoint_cpu: float
    """Microseconds of the endpoint's CPU a message."""
    endpoint_busy: float
    calls: float
    """Calls for ten messages."""


def contest(contenders: dict[str, Contender], *, rounds: int, sizes: Sizes) -> dict[str, Turn]:
    """The medians of each contender over rounds in which all take turns."""
    for contender in contenders.values():
        contender.endpoint.await_poll(contender.queue)
    turns: dict[str, list[Turn]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            turns[name].append(take_turn(contender, sizes))
    return {name: _median(found) for name, found in turns.items()}


def take_turn(contender: Contender, sizes: Sizes) -> Turn:
    """Open the queue, let the contender get going, measure, close the queue."""
    endpoint, process = contender.endpoint, contender.process
    endpoint.ask("open", contender.queue)
    time.sleep(sizes.warm_seconds)
    turn = measured(endpoint, process, sizes.window_seconds)
    endpoint.ask("close", contender.queue)
    endpoint.await_poll(contender.queue)
    return turn


def measured(endpoint: Canned, process: Process, seconds: float) -> Turn:
    """What a process under way does in so many seconds."""
    cpu, before = process.cpu_seconds(), endpoint.ask("counts")
    time.sleep(seconds)
    cpu, after = process.cpu_seconds() - cpu, endpoint.ask("counts")
    if after.escalated > before.escalated or after.deleted == before.deleted:
        raise SystemExit(f"the contender did not deliver what it was given: {before}, then {after}")
    messages, took = after.deleted - before.deleted, after.at - before.at
    endpoint_cpu = after.cpu - before.cpu
    return Turn(
        rate=messages / took,
        cpu=cpu / messages * 1e6,
        busy=cpu / took,
        endpoint_cpu=endpoint_cpu / messages * 1e6,
        endpoint_busy=endpoint_cpu / took,
        calls=(after.calls - before.calls) / messages * 10,
    )


def _median(turns: list[Turn]) -> Turn:
    columns = zip(*(msgspec.structs.astuple(turn) for turn in turns), strict=True)
    return Turn(*(statistics.median(column) for column in columns))
