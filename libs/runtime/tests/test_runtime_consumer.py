from __future__ import annotations

import itertools
from contextlib import asynccontextmanager

import anyio
import pytest

from snavio.aws.errors import NotFound, Permanent, Transient
from snavio.runtime import metrics
from snavio.runtime.common_config import CommonConfig
from snavio.runtime.consumer import Consumer, ConsumerSettings
from snavio.runtime.dead_letters import ORIGIN, REASON
from snavio.runtime.errors import InvariantBroken
from snavio.runtime.outcome import Dead, Done, Retry
from snavio.runtime.testing import virtual_now, virtual_time
from snavio.runtime.tracecontext import TraceContext

Q = "memory://sqs/000000000000/work"
DLQ = "memory://sqs/000000000000/work-dlq"


async def all_done(messages):
    return [Done()] * len(messages)


@pytest.fixture
def consumer(queues, log, telemetry):
    def make(handler=all_done, **settings) -> Consumer:
        return Consumer(
            queues=queues,
            queue=Q,
            dlq=DLQ,
            handler=handler,
            log=log,
            settings=ConsumerSettings(**{"wait_seconds": 1, **settings}),
            telemetry=telemetry,
            now=virtual_now,
            roll=lambda: 0.5,
        )

    return make


@asynccontextmanager
async def running(consumer: Consumer, *, drain_seconds: float = 60):
    async with anyio.create_task_group() as group:
        group.start_soon(consumer.run)
        yield
        consumer.drain(drain_seconds)


async def until(condition, seconds: float = 1000):
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - on virtual time this waits for the thing, not for a while
            await anyio.sleep(0.01)


@virtual_time
async def test_every_message_done_is_deleted(queues, consumer):
    queues.put(Q, *map(str, range(95)))
    async with running(consumer()):
        await until(lambda: not queues.bodies(Q))


@virtual_time
async def test_a_batch_never_exceeds_ten_and_deletes_go_in_tens_when_busy(queues, consumer):
    sizes = []

    async def handler(messages):
        sizes.append(len(messages))
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(100)))
    async with running(consumer(handler)):
        await until(lambda: not queues.bodies(Q))
    assert max(sizes) == 10
    assert [len(batch) for batch in queues.called("delete")] == [10] * 10


@virtual_time
async def test_a_handler_that_may_take_more_is_given_what_waits_and_never_waits_for_more(queues, consumer):
    sizes = []
    busy = anyio.Event()

    async def handler(messages):
        sizes.append(len(messages))
        await busy.wait()
        return [Done()] * len(messages)

    subject = consumer(handler, handlers=1, handler_batch=25)
    queues.put(Q, "one")
    async with running(subject):
        await until(lambda: sizes == [1])
        queues.put(Q, *map(str, range(60)))
        await until(lambda: subject.status().waiting == 60)
        busy.set()
        await until(lambda: not queues.bodies(Q))
    assert sizes == [1, 25, 25, 10]
    assert all(len(batch) <= 10 for batch in queues.called("delete"))


@virtual_time
async def test_deletes_of_small_handler_batches_are_coalesced(queues, consumer):
    async def handler(messages):
        await anyio.sleep(0.001)
        return [Done()] * len(messages)

    subject = consumer(handler, alone_from=1)  # every message alone
    queues.put(Q, *map(str, range(20)))
    async with running(subject):
        await until(lambda: not queues.bodies(Q))
    assert len(queues.called("delete")) <= 4


@virtual_time
async def test_a_single_delete_does_not_wait_for_company(queues, consumer):
    queues.put(Q, "one")
    async with running(consumer()):
        await until(lambda: not queues.bodies(Q), seconds=0.1)


@virtual_time
async def test_polls_run_concurrently(queues, consumer):
    async with running(consumer(polls=7)):
        await anyio.sleep(0.5)
        assert queues.open_polls == 7


@virtual_time
async def test_a_retry_returns_alone_after_a_backoff_by_its_receive_count(queues, consumer):
    seen: list[tuple[str, float]] = []

    async def handler(messages):
        seen.extend((message.body, anyio.current_time()) for message in messages)
        return [Retry("not now") if message.body == "bad" else Done() for message in messages]

    queues.put(Q, "a", "bad", "b")
    async with running(consumer(handler)):
        await until(lambda: [body for body, _ in seen].count("bad") == 5)
        assert queues.bodies(Q) == ["bad"]
    assert [body for body, _ in seen].count("a") == 1
    times = [time for body, time in seen if body == "bad"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == pytest.approx([2, 3, 6, 12], abs=0.2)  # 3/4 of 2, 4, 8, 16, in whole seconds


@virtual_time
async def test_a_retry_may_say_when(queues, consumer):
    async def handler(messages):
        return [Retry("later", after_seconds=77.2)] * len(messages)

    queues.put(Q, "a")
    async with running(consumer(handler)):
        await until(lambda: queues.called("set_visibility"))
    assert queues.called("set_visibility") == [[("m001/1", 78)]]


@virtual_time
async def test_a_dead_message_is_in_the_dead_letter_queue_before_it_is_deleted(queues, consumer):
    async def handler(messages):
        return [Dead("malformed-json")] * len(messages)

    queues.put(Q, "junk", group="acme", attributes={"traceparent": "x"})
    subject = consumer(handler)
    async with running(subject):
        await until(lambda: not queues.bodies(Q))
    order = [name for name, _, _ in queues.calls if name in {"send", "delete"}]
    assert order == ["send", "delete"]
    (letter,) = [held.message for held in queues.held(DLQ)]
    assert (letter.body, letter.group) == ("junk", "acme")
    assert letter.attributes == {"traceparent": "x", REASON: "malformed-json", ORIGIN: "m001"}
    assert subject._tally.dead == 1
    assert subject._tally.done == 0


@pytest.mark.parametrize("how", ["faults", "failures"])
@pytest.mark.parametrize(
    "error", [Transient("throttled"), Permanent("denied")], ids=["transient", "permanent"]
)
@virtual_time
async def test_a_dead_message_that_cannot_be_buried_is_kept_and_tried_again(queues, consumer, how, error):
    async def handler(messages):
        return [Dead("malformed-json")] * len(messages)

    getattr(queues, how)["send"].append(error)
    queues.put(Q, "junk")
    async with running(consumer(handler)):
        await until(lambda: queues.called("set_visibility"))
        assert queues.called("set_visibility") == [[("m001/1", 2)]]  # as a retry would
        assert queues.bodies(Q) == ["junk"]
        await until(lambda: not queues.bodies(Q))
    assert queues.bodies(DLQ) == ["junk"]


@virtual_time
async def test_a_handler_that_raises_has_its_messages_returned_and_the_error_logged(queues, consumer, lines):
    async def handler(messages):
        raise KeyError("oops")

    queues.put(Q, "a", "b")
    async with running(consumer(handler)):
        await until(lambda: queues.called("set_visibility"))
        assert queues.bodies(Q) == ["a", "b"]
    (line,) = [line for line in lines if line["event"] == "handler.raised"]
    assert line["error_type"] == "KeyError"
    assert line["message_ids"] == ["m001", "m002"]


@virtual_time
async def test_what_makes_a_handler_raise_is_isolated_before_its_neighbours_are_lost(queues, consumer):
    async def handler(messages):
        if any(message.body == "poison" for message in messages):
            raise ValueError("poison")
        return [Done()] * len(messages)

    queues.put(Q, *"abcd", "poison", *"efgh")
    async with running(consumer(handler)):
        await until(lambda: queues.bodies(Q) == ["poison"])
        (poison,) = queues.held(Q)
        assert poison.receive_count <= 3


@virtual_time
async def test_a_message_that_never_succeeds_ends_in_the_dead_letter_queue_by_the_queues_own_count(
    queues, consumer
):
    async def handler(messages):
        return [Retry("still not")] * len(messages)

    queues.put(Q, "poison")
    async with running(consumer(handler)):
        await until(lambda: queues.bodies(DLQ) == ["poison"])
    (buried,) = queues.held(DLQ)
    assert buried.receive_count == 5
    assert queues.called("send") == []


@pytest.mark.parametrize(
    "outcomes", [[], [Done()] * 3, [Done(), "fine"]], ids=["few", "many", "not an outcome"]
)
@virtual_time
async def test_a_handler_that_breaks_its_contract_ends_the_consumer_loudly(queues, consumer, outcomes):
    async def handler(messages):
        return outcomes

    queues.put(Q, "a", "b")
    with pytest.RaisesGroup(InvariantBroken, flatten_subgroups=True):
        await consumer(handler).run()
    assert queues.visible(Q) == ["a", "b"]  # neither deleted nor hidden


@virtual_time
async def test_messages_in_hand_stay_hidden_handled_or_waiting(queues, consumer):
    release = anyio.Event()
    handled = []

    async def handler(messages):
        handled.extend(message.body for message in messages)
        await release.wait()
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(40)))
    async with running(consumer(handler, handlers=1, batches_in_hand=4, visibility_seconds=5)):
        await until(lambda: len(handled) == 10)
        await anyio.sleep(60)
        assert queues.visible(Q) == []
        assert all(held.receive_count == 1 for held in queues.held(Q))
        assert len(handled) == 10
        release.set()
        await until(lambda: not queues.bodies(Q))
    assert len(handled) == 40


@virtual_time
async def test_a_failed_renewal_is_made_good_before_the_message_shows(queues, consumer):
    release = anyio.Event()

    async def handler(messages):
        await release.wait()
        return [Done()] * len(messages)

    queues.put(Q, "a")
    queues.failures["set_visibility"] = [Transient("timeout"), Transient("timeout")]
    async with running(consumer(handler, visibility_seconds=10)):
        await anyio.sleep(30)
        assert queues.visible(Q) == []
        assert queues.held(Q)[0].receive_count == 1
        release.set()


@virtual_time
async def test_a_waiting_message_whose_receipt_is_lost_is_not_handled_here(queues, consumer):
    release = anyio.Event()
    handled = []

    async def handler(messages):
        handled.extend(message.receipt for message in messages)
        await release.wait()
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(10)), "late")
    async with running(consumer(handler, handlers=1, polls=1, batches_in_hand=3, visibility_seconds=10)):
        await until(lambda: len(handled) == 10)
        await until(lambda: queues.held(Q)[10].receipt)
        queues.held(Q)[10].receipt = "taken over by another worker"
        queues.held(Q)[10].visible_at = float("inf")
        await anyio.sleep(20)
        release.set()
        await until(lambda: len(queues.bodies(Q)) == 1)
    assert len(handled) == 10


@virtual_time
async def test_receiving_pauses_while_the_hand_is_full(queues, consumer):
    release = anyio.Event()

    async def handler(messages):
        await release.wait()
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(200)))
    subject = consumer(handler, polls=5, batches_in_hand=3, handlers=2)
    async with running(subject):
        await anyio.sleep(20)
        assert subject.status().in_hand == 30
        assert len(queues.called("receive")) == 3
        release.set()
        await until(lambda: not queues.bodies(Q))


@virtual_time
async def test_a_transient_receive_error_is_waited_out_with_growing_pauses(queues, consumer):
    queues.failures["receive"] = [Transient("throttled")] * 4
    queues.put(Q, "a")
    async with running(consumer(polls=1)):
        await until(lambda: not queues.bodies(Q))
    times = [time for name, time, _ in queues.calls if name == "receive"][:5]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == pytest.approx([0.375, 0.75, 1.5, 3.0])


@virtual_time
async def test_a_queue_that_stays_missing_ends_the_consumer_loudly(queues, consumer):
    del queues.queues[Q]
    with pytest.RaisesGroup(NotFound, flatten_subgroups=True):
        await consumer(polls=1).run()
    assert len(queues.called("receive")) == 5


@virtual_time
async def test_a_queue_missing_for_a_moment_is_no_reason_to_die(queues, consumer):
    queues.failures["receive"] = [NotFound("not yet")] * 4
    queues.put(Q, "a")
    async with running(consumer(polls=1)):
        await until(lambda: not queues.bodies(Q))


@virtual_time
async def test_a_delete_that_fails_for_a_moment_is_repeated_while_the_message_stays_hidden(queues, consumer):
    handled = []

    async def handler(messages):
        handled.extend(messages)
        return [Done()] * len(messages)

    queues.failures["delete"] = [Transient("timeout")]
    queues.faults["delete"] = [None, Transient("internal")]
    queues.put(Q, "a", "b", "c")
    async with running(consumer(handler)):
        await until(lambda: not queues.bodies(Q))
    assert len(handled) == 3
    assert [len(batch) for batch in queues.called("delete")] == [3, 3, 1]


@virtual_time
async def test_a_delete_refused_for_good_is_counted_and_logged(queues, consumer, lines):
    queues.faults["delete"] = [Permanent("receipt is spent")]
    queues.put(Q, "a")
    subject = consumer()
    async with running(subject):
        await until(lambda: subject.status().tally.unconfirmed == 1)
    assert any(line["event"] == "queue.delete_failed" for line in lines)


@virtual_time
async def test_draining_finishes_what_is_in_hand_and_receives_nothing_more(queues, consumer):
    handled = []

    async def handler(messages):
        handled.extend(message.body for message in messages)
        await anyio.sleep(3)
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(50)))
    subject = consumer(handler, handlers=1, polls=1, batches_in_hand=3)
    async with running(subject):
        await until(lambda: subject.status().in_hand == 30)
        subject.drain(60)
        receives = len(queues.called("receive"))
    assert len(queues.called("receive")) == receives
    assert len(handled) == 30
    assert len(queues.visible(Q)) == len(queues.bodies(Q)) == 20


@virtual_time
async def test_draining_lets_an_open_poll_end_and_handles_what_it_brings(queues, consumer):
    subject = consumer(polls=1, wait_seconds=10)
    async with running(subject):
        await anyio.sleep(1)
        subject.drain(60)
        await anyio.sleep(1)
        queues.put(Q, "late")
    assert queues.bodies(Q) == []


@virtual_time
async def test_what_is_not_finished_at_the_deadline_is_shown_to_others_at_once(queues, consumer):
    async def handler(messages):
        await anyio.sleep(1000 if messages[0].body == "0" else 1)
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(30)))
    subject = consumer(handler, handlers=2, polls=1, batches_in_hand=3)
    async with running(subject):
        await until(lambda: subject.status().in_hand == 30)
        began = anyio.current_time()
        subject.drain(5)
    assert anyio.current_time() - began == pytest.approx(5, abs=0.1)
    assert queues.visible(Q) == queues.bodies(Q) == [str(number) for number in range(10)]
    assert subject.status().tally.released == 10


@virtual_time
async def test_draining_waits_for_dead_letters_and_repeated_deletes(queues, consumer):
    drained = anyio.Event()

    async def handler(messages):
        await drained.wait()
        return [Dead("junk") if message.body == "dead" else Done() for message in messages]

    queues.put(Q, "dead", "alive")
    queues.failures["delete"] = [Transient("timeout")] * 3
    subject = consumer(handler)
    async with running(subject):
        await until(lambda: subject.status().in_hand == 2)
        subject.drain(60)
        await anyio.sleep(2)  # polls have ended: only the handler is awaited
        drained.set()
    assert (queues.bodies(Q), queues.bodies(DLQ)) == ([], ["dead"])
    assert subject.status().tally.released == 0


@pytest.mark.parametrize(("drain", "wait"), [(20.0, 10), (6.5, 5), (2.0, 1), (0.5, 1)])
def test_a_poll_never_outlasts_the_drain(drain, wait):
    assert ConsumerSettings.of(CommonConfig(wait_seconds=10, drain_seconds=drain)).wait_seconds == wait


@virtual_time
async def test_an_idle_consumer_drains_as_soon_as_its_polls_end(queues, consumer):
    async with running(consumer(wait_seconds=2)):
        await anyio.sleep(1)
        began = anyio.current_time()
    assert anyio.current_time() - began <= 1.1


@virtual_time
async def test_an_abort_still_deletes_what_is_done_and_hands_back_the_rest(queues, consumer):
    async def handler(messages):
        if messages[0].body == "0":
            await anyio.sleep(1000)
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(20)))
    subject = consumer(handler, handlers=2, polls=2)
    queues.failures["delete"] = [Transient("timeout")]
    async with anyio.create_task_group() as group:
        group.start_soon(subject.run)
        await until(lambda: queues.called("delete"))
        group.cancel_scope.cancel()
    assert queues.visible(Q) == queues.bodies(Q) == [str(number) for number in range(10)]


@virtual_time
async def test_status_tells_what_is_in_hand_and_a_stuck_handler_is_an_ailment(queues, consumer):
    async def handler(messages):
        await anyio.sleep(500)
        return [Done()] * len(messages)

    queues.put(Q, *map(str, range(15)))
    subject = consumer(handler, handlers=1, stuck_seconds=300)
    async with running(subject, drain_seconds=1000):
        await anyio.sleep(100)
        status = subject.status()
        assert (status.queue, status.in_hand, status.waiting, status.tally.received) == ("work", 15, 5, 15)
        assert status.oldest_in_hand_seconds == pytest.approx(100, abs=1)
        assert subject.ailment() is None
        await anyio.sleep(250)
        assert subject.ailment() == "work: a handler has been at work for 350 s"


@virtual_time
async def test_outcomes_and_queue_latency_are_measured(queues, consumer, telemetry):
    async def handler(messages):
        fates = {"a": Done(), "b": Retry("x", after_seconds=500), "c": Dead("y")}
        return [fates[message.body] for message in messages]

    queues.put(Q, "a", "b", "c")
    await anyio.sleep(2)
    subject = consumer(handler)
    async with running(subject):
        await until(lambda: subject.status().in_hand == 0 and subject.status().tally.received == 3)
    for outcome in ("done", "retried", "dead"):
        assert telemetry.total(metrics.QUEUE_MESSAGES, queue="work", outcome=outcome) == 1
    assert telemetry.total(metrics.QUEUE_LATENCY, queue="work") == pytest.approx(6000, abs=10)


@virtual_time
async def test_receive_and_process_spans_link_to_where_messages_were_created(queues, consumer, telemetry):
    origin = TraceContext("a" * 32, "b" * 16)
    queues.put(Q, "a", "b", attributes={"traceparent": origin.traceparent})
    queues.put(Q, "untraced")
    async with running(consumer()):
        await until(lambda: not queues.bodies(Q))
    receive, process = telemetry.spans
    for span, name, kind in ((receive, "receive", "client"), (process, "process", "consumer")):
        assert (span.name, span.kind, span.links) == (f"{name} work", kind, (origin,))
        assert span.attributes["messaging.system"] == "aws_sqs"
        assert span.attributes["messaging.operation.type"] == name
        assert span.attributes["messaging.batch.message_count"] == 3
