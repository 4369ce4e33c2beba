import json

import msgspec
import pytest

from snavio.aws.errors import SnavioError
from snavio.cli.cost.bill import GOAL, bill_for, rate_that_meets
from snavio.cli.cost.calls import Action, Call, metered, queues_in_a_batch
from snavio.cli.cost.prices import DEFAULT_REGION, load_prices, shipped_meters
from snavio.cli.cost.standing import MONTH_SECONDS
from snavio.cli.cost.workload import TYPICAL, Path, Workload, parse_mix
from snavio.cli.main import main


@pytest.fixture(scope="module")
def prices():
    return load_prices()


def typical(rate, **fields):
    return Workload(rate=rate, mix=TYPICAL, **fields)


def test_a_mix_is_read_as_it_is_typed():
    assert parse_mix(" fast=0.75, strict=.25 ") == {Path.FAST: 0.75, Path.STRICT: 0.25}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fast=0.9", "make 0.9, not 1"),
        ("fast=0.9,quick=0.1", "'quick' is no path: there are invalid, fast"),
        ("fast", "write fast=0.25"),
        ("fast=much", "write fast=0.25"),
        ("fast=-1,slow=2", "write fast=0.25"),
        ("fast=nan", "write fast=0.25"),
        ("fast=0.5,fast=0.5", "twice"),
        ("", "make 0, not 1"),
    ],
)
def test_a_wrong_mix_is_told_what_is_wrong(text, said, capsys):
    assert main(["cost", "--rate", "1", "--mix", text]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "much"])
def test_a_rate_that_is_none_is_wrong_usage(rate, capsys):
    assert main(["cost", "--rate", rate]) == 2
    assert "--rate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("action", "size", "meter", "amount"),
    [
        (Action.PUT_EVENT, 65_536, "eventbridge.events", 1),
        (Action.PUT_EVENT, 65_537, "eventbridge.events", 2),
        (Action.SEND, 0, "sqs.requests", 1),
        (Action.SEND, 200_000, "sqs.requests", 4),
        (Action.WRITE, 1024, "dynamodb.writes", 1),
        (Action.WRITE, 1025, "dynamodb.writes", 2),
        (Action.PUBLISH, 7000, "sns.publishes", 1),
    ],
)
def test_what_aws_bills_in_steps_is_rounded_up(action, size, meter, amount):
    call = Call(component="x", action=action, where="ingress", count=1, size=size)
    assert metered(call)[meter] == amount


def test_a_batch_is_sent_to_as_many_queues_as_it_is_for():
    assert queues_in_a_batch(10, 1) == 1
    assert queues_in_a_batch(1, 50) == pytest.approx(1)
    assert 9.9 < queues_in_a_batch(10, 10_000) < 10


def test_every_meter_that_is_counted_has_a_price(prices):
    bill = bill_for(typical(100.0), prices)
    assert bill.per_million > 0
    assert all(
        price.usd > 0 and price.unit and price.source.startswith(("Amazon ", "AWS "))
        for price in prices.of_meter.values()
    )


def test_a_bill_adds_up(prices):
    bill = bill_for(typical(100.0), prices)
    of_paths = sum(one.total * one.share for one in bill.paths.values())
    assert bill.per_million == pytest.approx(of_paths + bill.standing_per_million)
    assert bill.per_million == pytest.approx(sum(bill.by_component.values()))
    assert bill.monthly == pytest.approx(bill.per_million * 100 * MONTH_SECONDS / 1e6)
    assert bill.standing_per_million == pytest.approx(
        sum(bill.standing_monthly.values()) / (100 * MONTH_SECONDS) * 1e6
    )


def test_the_bus_and_its_queue_cost_what_their_pages_say(prices):
    """One event, one request: what no dispatcher on EventBridge can be cheaper than."""
    bill = bill_for(typical(1.0), prices)
    assert bill.paths[Path.FAST].by_component["bus"] == pytest.approx(1.40)


def test_a_harder_path_costs_more(prices):
    paths = bill_for(typical(100.0), prices).paths
    order = (Path.INVALID, Path.FAST, Path.LIMITED, Path.SLOW, Path.STRICT, Path.CLAIM_CHECK)
    costs = [paths[path].total for path in order]
    assert costs == sorted(costs)


def test_full_batches_and_no_telemetry_cost_less(prices):
    plain = bill_for(typical(100.0), prices).per_million
    assert bill_for(typical(100.0, batch=10), prices).per_million < plain
    without = bill_for(typical(100.0, telemetry=False), prices)
    assert without.per_million < plain
    assert not {"outbox", "telemetry", "stream"} & without.by_component.keys()


def test_the_rate_that_meets_a_goal_is_the_lowest_that_does(prices):
    rate = rate_that_meets(GOAL, typical(1.0), prices)
    assert bill_for(typical(rate), prices).per_million <= GOAL
    assert bill_for(typical(rate * 0.98), prices).per_million > GOAL
    assert rate_that_meets(0.5, typical(1.0), prices) is None


def test_prices_of_ones_own_are_used(tmp_path, prices):
    dear = {
        name: {"usd": 2 * price.usd, "per": price.per, "unit": price.unit, "from": price.source}
        for name, price in prices.of_meter.items()
    }
    file = tmp_path / "prices.json"
    document = {"currency": "USD", "recorded": "2030-01", "left_out": "", "regions": {"moon-1": dear}}
    file.write_text(json.dumps(document))
    twice = bill_for(typical(10.0), load_prices("moon-1", file))
    assert twice.per_million == pytest.approx(2 * bill_for(typical(10.0), prices).per_million)


@pytest.mark.parametrize(
    ("region", "text", "said"),
    [
        ("moon-1", None, f"only for {DEFAULT_REGION}"),
        ("moon-1", "{", "cannot be read"),
        (
            "moon-1",
            '{"currency":"USD","recorded":"","left_out":"","regions":{"moon-1":{}}}',
            "lack cloudwatch",
        ),
    ],
)
def test_prices_of_no_use_are_refused(tmp_path, region, text, said):
    file = None
    if text is not None:
        file = tmp_path / "prices.json"
        file.write_text(text)
    with pytest.raises(SnavioError, match=said):
        load_prices(region, file)


def test_the_command_says_whether_the_goal_is_met(capsys):
    assert main(["cost", "--rate", "1000"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "meets the goal of 10 USD" in text
    assert main(["cost", "--rate", "0.1"]) == 0
    assert "misses the goal of 10 USD" in " ".join(capsys.readouterr().out.split())


def test_the_command_gives_machines_the_whole_bill(capsys):
    assert main(["cost", "--rate", "50", "--no-audit", "--json"]) == 0
    document = msgspec.json.decode(capsys.readouterr().out)
    assert document["bill"]["workload"]["audit"] is False
    assert document["bill"]["paths"].keys() == set(Path)
    assert document["goal_met_from_rate"] > 0


def test_no_price_is_kept_for_nothing(prices):
    used = set()

    class Noting:
        region, recorded = prices.region, prices.recorded

        def usd(self, meter, amount):
            used.add(meter)
            return prices.usd(meter, amount)

    bill_for(typical(1.0), Noting())
    assert used == shipped_meters()
