"""The flowcharts tell everything that can become of a command, in the order in which it is decided."""

import importlib
import re
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from dispatch_world import World

from snavio.domain.models import Ban, BanMode, DedupeMode, Quota, RateLimit
from snavio.domain.screening import ScreeningPolicy, screen
from snavio.domain.warm import Escalate, decide_warm
from snavio.wire import events
from snavio.wire.commands import EscalationReason
from snavio.wire.events import FailedReason, InvalidReason

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/flowcharts.md").read_text()
SOURCE, TARGET, NAME = "acme/billing", "discord-bot", "notify-user"


def chart(title: str) -> str:
    """What stands under a heading, up to the next of its kind."""
    return re.split(r"\n## ", PAGE.split(f"\n## {title}")[1])[0]


def outcomes(text: str) -> str:
    """The boxes of a chart: what is not a question."""
    return "\n".join(re.findall(r'\["(.*)"\]', text)) + "\n".join(re.findall(r'\|"(.*told by.*)"\|', text))


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_.-]+", text.replace("<br>", " ")))


@pytest.mark.parametrize(
    ("title", "reasons"), [("Shield", InvalidReason), ("Fast", EscalationReason), ("Slow", FailedReason)]
)
def test_every_reason_of_the_catalogue_is_in_the_chart_of_who_gives_it(title, reasons):
    assert {reason.value for reason in reasons} - words(outcomes(chart(title))) == set()


def test_every_event_that_ends_a_command_is_in_a_chart():
    ends = {
        events.CommandDelivered,
        events.CommandInvalid,
        events.CommandFailed,
        events.CommandDuplicate,
        events.CommandOverLimit,
    }
    assert {event.__struct_config__.tag for event in ends} - words(outcomes(PAGE)) == set()


def test_the_source_quota_is_told_apart_from_the_limit():
    assert events.SOURCE_QUOTA in words(outcomes(chart("Slow")))


@pytest.fixture
def drawing(monkeypatch):
    """The modules that draw the charts."""
    monkeypatch.syspath_prepend(str(ROOT / "tools/generate"))
    names = ("exploring", "flow_fast", "flow_shield", "mermaid")
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in names:
        sys.modules.pop(name, None)


def test_a_chart_asks_what_the_code_asks_in_its_order_and_nothing_else(drawing):
    answers = {"yes": True, "no": False}
    leaf = drawing.exploring.Leaf

    def decide(oracle, first, second):
        oracle.ask("Does it matter?", answers)
        if oracle.ask(first, answers):
            return leaf("one")
        return leaf("two") if oracle.ask(second, {**answers, "perhaps": True}) else leaf("three")

    tree = drawing.exploring.explore(lambda oracle: decide(oracle, "A?", "B?"))
    assert tree.text == "A?"
    assert [answer for answer, _ in tree.branches] == ["yes", "no"]
    below = tree.branches[1][1]
    assert (below.text, [answer for answer, _ in below.branches]) == ("B?", ["yes or perhaps", "no"])
    assert drawing.exploring.explore(lambda oracle: decide(oracle, "B?", "A?")).text == "B?"


def test_a_decision_that_is_changed_is_no_longer_the_one_drawn(drawing, monkeypatch):
    def drawn():
        return drawing.mermaid.Chart().draw("from shield", drawing.flow_fast.fast_tree())

    assert drawn() in PAGE

    def bans_first(command, message_id, registry, local, mode, now):
        registry.ban(command.source, command.target, command.name, now)
        if local.local_ban(command, now) is not None:
            return Escalate(EscalationReason.WARM_PATH_BAN)
        return decide_warm(command, message_id, registry, local, mode, now)

    monkeypatch.setattr(drawing.flow_fast, "decide_warm", bans_first)
    assert drawn() not in PAGE


def test_checks_of_shield_in_no_fixed_order_are_not_drawn(drawing, monkeypatch):
    def capricious(body, received_at, registry, policy):
        return screen(body, received_at, registry, policy if len(body) % 2 else ScreeningPolicy(max_bytes=1))

    monkeypatch.setattr(drawing.flow_shield, "screen", capricious)
    with pytest.raises((ValueError, TypeError)):
        drawing.flow_shield.shield_trees()


def place(outcome: str) -> int:
    """How far down slow's charts an outcome stands, in the last chart that has it."""
    slow = chart("Slow")
    last = max(slow.rfind("### ", 0, found.start()) for found in re.finditer(re.escape(outcome), slow))
    return slow.index(outcome, last)


async def test_slow_goes_through_its_stages_in_the_order_of_the_charts():
    """A command has everything against it; each objection taken away brings out the next one down the charts."""
    world = World()
    await world.service(SOURCE)
    limit = RateLimit(1, 3600)
    route = await world.route(TARGET, NAME, dedupe_mode=DedupeMode.STRICT, rate_limit=limit)
    await world.grant(SOURCE, TARGET, NAME)
    await world.store.put_ban(Ban(source=SOURCE, mode=BanMode.WARM), actor="test")
    quota = Quota(source=SOURCE, target=TARGET, command=NAME, rate_limit=limit)
    await world.store.put_quota(quota, actor="test")
    told = []

    async def send(**metadata):
        # New workers, for one that remembers the id would drop it before slow is asked.
        workers = [await world.start(name) for name in ("shield", "fast", "slow")]
        before = {event.event_id for event in world.events()}
        await world.send(SOURCE, TARGET, NAME, **metadata)
        await world.pump(*workers, patience=5.0)
        for event in world.events():
            # One command in a hundred is a sample of its producer's clock as well.
            aside = isinstance(event, events.CommandEscalated | events.SkewSample)
            if event.event_id not in before and not aside:
                reasons = (getattr(event, field, None) for field in ("sub_reason", "reason"))
                told.append(next((str(reason) for reason in reasons if reason), events.event_type(event)))

    used = str(uuid.uuid4())
    await send(id=used)
    assert told == ["snavio.command.delivered"]
    told.clear()
    # Its id is used up now, and so are the quota and the limit. The rest goes too.
    url = world.queues.url_of(route.queue_arn)
    queue = world.queues.queues.pop(url)
    await world.revoke(SOURCE, TARGET, NAME)
    await world.store.delete_route(TARGET, NAME, actor="test")

    await send(id=used)
    await world.store.put_route(route, actor="test")
    await send(id=used)
    await world.grant(SOURCE, TARGET, NAME)
    await send(id=used)
    await send()
    await world.store.delete_quota(SOURCE, TARGET, NAME, actor="test")
    await send()
    await world.store.put_route(msgspec.structs.replace(route, rate_limit=None), actor="test")
    await send()
    world.queues.queues[url] = queue
    await send()
    assert told == [
        "route-missing",
        "acl-deny",
        "snavio.command.duplicate",
        "source-quota",
        "rate-limit-exceeded",
        "delivery-failure",
        "snavio.command.delivered",
    ]
    # `source-quota` stands beside a `rate-limit-exceeded` of its own.
    plain = [outcome.replace("rate-limit-exceeded", 'rate-limit-exceeded"') for outcome in told[:-1]]
    places = [place(outcome) for outcome in plain]
    assert places == sorted(places)
