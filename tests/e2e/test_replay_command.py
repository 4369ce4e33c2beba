"""`snavio replay` on a real endpoint with real workers: from the archive and from a dead-letter queue."""

import asyncio
import json
import os
import sys
import time

import pytest
from live_platform import Fleet, live

from snavio.aws.values import Outgoing

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(300)]

SOURCE, TARGET = "acme/billing", "discord-bot"
DELIVERED, DUPLICATE = "snavio.command.delivered", "snavio.command.duplicate"


@pytest.fixture
def fleet(platform, tmp_path):
    with (tmp_path / "workers.log").open("w") as log:
        started = Fleet(platform, log)
        yield started
        started.stop()


async def snavio_replay(platform, *arguments):
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SNAVIO_"))},
        **platform.environment(),
    }
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "snavio.cli.main", "replay", "--json", *arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await running.communicate()
    assert running.returncode == 0, err.decode()
    return json.loads(out)


async def test_a_replay_brings_lost_commands_back_and_repeats_no_strict_one(platform, fleet):
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 5))
    async with live(platform) as world:
        await world.service(SOURCE)
        pay = await world.route(TARGET, "pay", SOURCE, dedupe_mode="strict")
        say = await world.route(TARGET, "say", SOURCE)
        for service in ("shield", "fast", "slow"):
            fleet.start(service)
        strict, plain = await world.send(
            [world.entry(SOURCE, TARGET, name, {"n": 1.50}) for name in ("pay", "say")]
        )
        await world.until_told({strict, plain}, {DELIVERED})
        assert len(await world.drain(pay)) == len(await world.drain(say)) == 1

        # From the archive: both come back, the strict one is known.
        asked = ("--from", "archive", "--since", begun, "--source", SOURCE, "--reason", "lost by the target")
        dry = await snavio_replay(platform, *asked, "--dry-run")
        assert (dry["counts"]["matched"], dry["counts"]["emitted"]) == (2, 0)
        done = await snavio_replay(platform, *asked)
        assert done["counts"]["emitted"] == 2
        await world.until_told({strict}, {DUPLICATE})
        [again] = await arrivals(world, say)
        assert again["metadata"]["id"] == plain
        assert again["metadata"]["replay_id"] == done["replay_id"]
        assert again["command"]["payload"] == {"n": 1.5}
        assert await world.drain(pay) == []

        # From a dead-letter queue, in the form the bus delivered it; its timestamp is of no matter.
        dlq = world.aws.queues.url_of(platform.names.queue_arn(platform.names.dlq(platform.names.ingress)))
        [late] = [world.entry(SOURCE, TARGET, "pay", {"n": 2})]
        event = {"source": SOURCE, "detail": json.loads(late["Detail"])}
        event["detail"]["metadata"]["timestamp"] = "2026-01-01T00:00:00.000Z"
        for _ in range(2):
            await world.aws.queues.send(dlq, [Outgoing(json.dumps(event))])
            done = await snavio_replay(platform, "--from", "ingress", "--reason", "a bad day")
            assert done["counts"]["emitted"] == 1
        command_id = event["detail"]["metadata"]["id"]
        await world.until_told({command_id}, {DUPLICATE})
        [once] = await arrivals(world, pay)
        assert once["metadata"]["id"] == command_id
        assert once["metadata"]["replay_reason"] == "a bad day"
        assert await world.aws.queues.receive(dlq, wait_seconds=0) == []


async def arrivals(world, queue):
    deadline = time.monotonic() + 60
    while not (found := await world.drain(queue)):
        assert time.monotonic() < deadline, "nothing arrived"
    return found
