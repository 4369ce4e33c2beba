"""The ingress under a bounded part of the campaign that `make fuzz` runs at length, and shield's handler under a sample."""

from __future__ import annotations

import random

import pytest
from dispatch_world import World
from ingress_check import Escape, check, run
from ingress_corpus import SEEDS, SIGNED
from ingress_mutations import Case, forgery, make_case, reserialisation

from snavio.aws.values import Received
from snavio.runtime.outcome import Dead, Done
from snavio.wire.commands import decode_admitted

SEED = 8


def test_no_input_escapes():
    outcomes, escapes, _ = run(SEED, range(20_000))
    assert escapes == []
    assert sum(outcomes.values()) == 20_000
    assert len(outcomes) >= 12, "the inputs reach too few of the reasons to prove much"


def test_no_forgery_is_accepted_as_what_nobody_signed():
    outcomes = [check(forgery(SEED, number)) for number in range(15_000)]
    assert outcomes.count("hmac-mismatch") > 1000, "most forgeries never came as far as the signature"


def test_whoever_serialised_a_payload_anew_it_is_genuine():
    for number in range(3000):
        assert check(reserialisation(SEED, number)) == "passed"


def test_every_seed_passes():
    assert {check(Case("seed", body)) for body, _ in SEEDS} == {"passed"}
    assert len(SIGNED) == len(SEEDS)


def test_the_check_sees_a_forgery():
    """A statement left out of what was signed is one: an escape must be called an escape."""
    honest = reserialisation(SEED, 1)
    with pytest.raises(Escape, match="nobody signed it"):
        check(Case("forged", honest.text))
    with pytest.raises(Escape, match="a genuine command was refused"):
        check(
            Case(
                "reserialised",
                honest.text.replace("notify-user", "notify-users"),
                honest.signed,
                genuine=True,
            )
        )


def test_an_input_is_made_again_from_its_number():
    assert [make_case(SEED, number) for number in range(200)] == [
        make_case(SEED, number) for number in range(200)
    ]


async def test_shield_gives_every_message_an_outcome_and_its_neighbours_theirs():
    """Hostile messages in batches with genuine ones: passed on, told as invalid, or dead, and nothing else."""
    world = World()
    await world.service("acme/billing")
    shield = await world.start("shield")
    chance = random.Random(SEED)
    number = 0
    for _ in range(150):
        genuine = world.command("acme/billing", "bot", "say", {"n": number})
        await world.put(genuine)
        [honest] = await world.queues.receive(shield.queue, wait_seconds=0)
        await world.queues.delete(shield.queue, [honest.receipt])
        hostile = []
        for _ in range(chance.randrange(1, 10)):
            number += 1
            hostile.append(
                Received(f"h{number}", f"r{number}", make_case(SEED, number).text, 1, world.clock())
            )
        batch = [*hostile, honest]
        chance.shuffle(batch)
        told, passed = len(world.events("snavio.command.invalid")), len(world.bodies(world.names.fast))
        outcomes = await shield.handle(batch)
        assert all(isinstance(outcome, Done | Dead) for outcome in outcomes), outcomes
        assert isinstance(outcomes[batch.index(honest)], Done)
        newly_passed = [decode_admitted(body) for body in world.bodies(world.names.fast)[passed:]]
        assert [command.id for command in newly_passed] == [genuine["detail"]["metadata"]["id"]]
        assert len(world.events("snavio.command.invalid")) - told == len(hostile)
