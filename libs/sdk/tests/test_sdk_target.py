"""A target over a queue in memory: what becomes of each message, and of the worker."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from dataclasses import dataclass

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from snavio.sdk import tracing
from snavio.sdk.errors import RejectCommand, RetryCommand
from snavio.sdk.handlers import Context
from snavio.sdk.idempotency import MemoryStore
from snavio.sdk.intake import TargetOptions
from snavio.sdk.target import Target
from snavio.sdk.testing.inbox import MemoryInbox

ID = "0f8fad5b-d9cb-469f-a165-70867728950e"


class NotifyUser(msgspec.Struct):
    user: int


@dataclass
class Paid:
    amount: float


def body(payload=None, *, name="notify-user", command_id=ID, target="bot", ref=None, **metadata):
    command = {"source": "acme/billing", "target": target, "name": name}
    if ref is not None:
        command["payload_ref"] = ref
    else:
        command["payload"] = {"user": 42} if payload is None else payload
    fixed = {
        "id": command_id,
        "timestamp": "2026-11-18T06:30:00Z",
        "type": "snavio.command-sent",
        "path": "fast",
        "dispatched_at": "2026-11-18T06:30:00Z",
        "possible_duplicate": False,
    }
    return msgspec.json.encode({"metadata": {**fixed, **metadata}, "command": command}).decode()


class Objects:
    def __init__(self, **objects):
        self.objects = objects

    async def read(self, _bucket, key, most_bytes):
        return self.objects[key][:most_bytes]


class Rig:
    """A target on a queue in memory, run until the queue is empty."""

    def __init__(self, *, store=None, **options):
        self.app = Target("bot", options=TargetOptions(**{"retry_seconds": 0, "wait_seconds": 1, **options}))
        self.inbox = MemoryInbox()
        self.store = store
        self.objects = Objects()

    def start(self):
        return asyncio.create_task(self.app.serve_over(self.inbox, self.objects, self.store))

    async def run(self, *bodies):
        for one in bodies:
            self.inbox.send(one)
        serving = self.start()
        async with asyncio.timeout(10):
            await self.inbox.empty()
        self.app.drain()
        self.inbox.let_polls_end()
        await serving
        return [dead.reason for dead in self.inbox.dead]


async def test_payloads_arrive_as_the_types_handlers_ask_for():
    rig, seen = Rig(), []

    @rig.app.command("notify-user")
    async def struct(cmd: NotifyUser, context: Context):
        seen.append((cmd, context.source, context.id, context.attempt, context.possible_duplicate))

    @rig.app.command("paid")
    async def data(cmd: Paid):
        seen.append(cmd)

    @rig.app.command("anything")
    def plain(cmd):
        seen.append((cmd, threading.current_thread() is threading.main_thread()))

    dead = await rig.run(
        body(), body({"amount": 1.5}, name="paid", command_id="b"), body([1], name="anything", command_id="c")
    )
    assert dead == []
    assert (NotifyUser(42), "acme/billing", ID, 1, False) in seen
    assert Paid(1.5) in seen
    assert ([1], False) in seen


async def test_pydantic_models_are_understood():
    pydantic = pytest.importorskip("pydantic")
    rig, seen = Rig(), []
    model = pydantic.create_model("NotifyUser", user=(int, ...))

    async def handle(cmd):
        seen.append(cmd)

    handle.__annotations__["cmd"] = model
    rig.app.command("notify-user")(handle)
    dead = await rig.run(body(), body({"user": "nobody"}, command_id="b"))
    assert seen == [model(user=42)]
    assert "does not fit notify-user" in dead[0]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("not json", "not a Snavio command"),
        ("{}", "not a Snavio command"),
        (body(target="other"), "the command is for other, not for bot"),
        (body(name="unheard-of"), "bot has no handler for unheard-of"),
        (body({"user": "x"}), "the payload does not fit notify-user: Expected `int`, got `str`"),
        (body({"user": -1}), "nobody has a negative number"),
    ],
)
async def test_poison_goes_to_the_dead_letter_queue_at_once_with_the_reason(message, reason):
    rig, calls = Rig(), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        calls.append(cmd)
        if cmd.user < 0:
            raise RejectCommand("nobody has a negative number")

    [dead] = await rig.run(message)
    assert reason in dead
    assert rig.inbox.dead[0].body == message
    assert len(calls) <= 1


async def test_a_failing_handler_is_tried_again_and_its_neighbours_are_not():
    rig, calls = Rig(), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser, context: Context):
        calls.append((cmd.user, context.attempt))
        if cmd.user == 7 and context.attempt < 3:
            raise OSError("flaky")

    dead = await rig.run(*(body({"user": n}, command_id=str(n)) for n in range(10)))
    assert dead == []
    assert sorted(calls) == sorted([*((n, 1) for n in range(10)), (7, 2), (7, 3)])


async def test_a_handler_that_never_succeeds_ends_in_the_dead_letter_queue_before_the_queue_moves_it():
    rig = Rig()

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        raise OSError("the database is gone")

    assert await rig.run(body()) == ["failed 3 times, last: OSError: the database is gone"]


async def test_a_handler_that_hangs_is_ended_by_its_timeout():
    rig = Rig()

    @rig.app.command("notify-user", timeout_seconds=0.01)
    async def handle(cmd: NotifyUser):
        await asyncio.Event().wait()

    [dead] = await rig.run(body())
    assert "TimeoutError" in dead


async def test_a_handler_may_ask_for_another_try():
    rig, attempts = Rig(), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser, context: Context):
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise RetryCommand(0)

    await rig.run(body())
    assert attempts == [1, 2]


@pytest.mark.parametrize(("name", "limit"), [("notify-user", 6), ("paid", 2)])
async def test_concurrency_is_limited_over_all_and_for_one_command(name, limit):
    rig, at_work, most = Rig(concurrency=6), [], []

    async def handle(cmd):
        at_work.append(1)
        most.append(len(at_work))
        await asyncio.sleep(0.01)
        at_work.pop()

    rig.app.command("notify-user")(handle)
    rig.app.command("paid", concurrency=2)(handle)
    await rig.run(*(body(name=name, command_id=str(n)) for n in range(20)))
    assert max(most) == limit


async def test_a_message_in_hand_stays_hidden_for_as_long_as_its_handler_works():
    """Visibility runs out three times over; without the heartbeat another worker would get the message."""
    rig, calls = Rig(visibility_seconds=1, concurrency=5), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser, context: Context):
        calls.append(context.attempt)
        await asyncio.sleep(3)

    await rig.run(body())
    assert calls == [1]


async def test_a_drain_finishes_what_is_in_hand_and_takes_nothing_more(eventually):
    rig, started, finished = Rig(concurrency=2), [], []
    go_on = asyncio.Event()

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        started.append(cmd.user)
        await go_on.wait()
        finished.append(cmd.user)

    for n in range(5):
        rig.inbox.send(body({"user": n}, command_id=str(n)))
    serving = rig.start()
    await eventually(lambda: len(started) == 2)
    rig.app.drain()
    go_on.set()
    await serving
    assert sorted(finished) == [0, 1]
    assert len(rig.inbox) == 3


async def test_a_drain_hands_back_what_does_not_finish_in_time(eventually):
    rig, started = Rig(), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        started.append(1)
        await asyncio.Event().wait()

    rig.inbox.send(body())
    serving = rig.start()
    await eventually(lambda: started)
    rig.app.drain(0.05)
    rig.inbox.let_polls_end()
    await serving
    # Visible at once: nobody has to wait for its time to run out.
    assert len(await rig.inbox.receive(max_messages=1, wait_seconds=0, visibility_seconds=1)) == 1


async def test_a_repeat_is_acknowledged_without_being_handled_again():
    rig, calls = Rig(store=MemoryStore()), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser, context: Context):
        calls.append(context.id)

    await rig.run(body())
    await_again = Rig(store=rig.store)
    await_again.app.command("notify-user")(handle)
    await await_again.run(body(possible_duplicate=True), body(command_id="another"))
    assert calls == [ID, "another"]


async def test_a_possible_duplicate_of_something_unknown_is_handled_and_told():
    rig, told = Rig(store=MemoryStore()), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser, context: Context):
        told.append(context.possible_duplicate)

    await rig.run(body(possible_duplicate=True))
    assert told == [True]


async def test_a_repeat_that_arrives_during_the_handling_waits_for_how_it_ends():
    rig, calls = Rig(store=MemoryStore(), visibility_seconds=1), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        calls.append(1)
        await asyncio.sleep(0.3)

    await rig.run(body(), body())
    assert calls == [1]


async def test_a_failed_handler_lets_its_claim_go_and_a_killed_one_leaves_a_mark(eventually):
    rig, told = Rig(store=MemoryStore()), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser, context: Context):
        told.append(context.possible_duplicate)
        if len(told) == 1:
            raise OSError("failed cleanly")
        if len(told) == 2:
            await asyncio.Event().wait()

    rig.inbox.send(body())
    serving = rig.start()
    await eventually(lambda: len(told) == 2)
    rig.app.drain(0)
    rig.inbox.let_polls_end()
    await serving
    rig.inbox.let_polls_end(closing=False)
    await rig.run()
    assert told == [False, False, True]


async def test_a_large_payload_is_fetched_and_checked():
    rig, seen = Rig(), []
    payload = b'{"user":42}'
    rig.objects = Objects(good=payload, changed=b'{"user":43}', longer=payload + b" ")

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        seen.append(cmd)

    def ref(key):
        digest = hashlib.sha256(payload).hexdigest()
        return {"bucket": "b", "key": key, "bytes": len(payload), "sha256": digest}

    dead = await rig.run(*(body(ref=ref(key), command_id=key) for key in ("good", "changed", "longer")))
    assert seen == [NotifyUser(42)]
    assert sorted(dead) == [
        "the payload at s3://b/changed is not the one that was sent",
        "the payload at s3://b/longer is not the one that was sent",
    ]


async def test_the_trace_of_the_handler_links_to_the_senders(monkeypatch):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(tracing.trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(tracing.trace, "get_tracer_provider", lambda: provider)
    rig, inside = Rig(), []

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        inside.append(trace.get_current_span().get_span_context().span_id)

    with tracing.sending("bot", "notify-user"):
        traceparent, _ = tracing.outgoing_context()
    await rig.run(body(traceparent=traceparent))
    sent, processed = spans.get_finished_spans()
    assert sent.kind is trace.SpanKind.PRODUCER
    assert processed.kind is trace.SpanKind.CONSUMER
    assert [link.context.span_id for link in processed.links] == [sent.context.span_id]
    assert inside == [processed.context.span_id]


async def test_a_queue_that_cannot_be_read_for_a_while_does_not_end_the_worker():
    rig, seen = Rig(), []
    receive, failures = rig.inbox.receive, [OSError("no route"), OSError("no route")]

    async def flaky(**arguments):
        if failures:
            raise failures.pop()
        return await receive(**arguments)

    rig.inbox.receive = flaky

    @rig.app.command("notify-user")
    async def handle(cmd: NotifyUser):
        seen.append(cmd)

    await rig.run(body())
    assert seen == [NotifyUser(42)]


def test_a_handler_nobody_could_call_is_refused_when_it_is_registered():
    app = Target("bot")
    with pytest.raises(TypeError, match="must take a payload"):
        app.command("notify-user")(lambda: None)
    with pytest.raises(ValueError, match="not the name of a command"):
        app.command("Notify User")
    app.command("notify-user")(lambda cmd: cmd)
    with pytest.raises(ValueError, match="two handlers"):
        app.command("notify-user")
    with pytest.raises(ValueError, match="not the name of a target"):
        Target("Bot")
