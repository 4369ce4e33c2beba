"""A real worker for tests to kill: forwards each message from one queue to another, slowly."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio

from snavio.aws.boto.session import open_aws
from snavio.aws.values import Outgoing
from snavio.runtime import metrics
from snavio.runtime.common_config import CommonConfig
from snavio.runtime.main import main
from snavio.runtime.outcome import Dead, Done, Retry

if TYPE_CHECKING:
    from snavio.runtime.worker import Worker


async def wire(config: CommonConfig, worker: Worker) -> None:
    aws = await worker.enter(open_aws(region=config.region, endpoint_url=config.endpoint))
    inbox, outbox = os.environ["SNAVIO_TEST_INBOX"], os.environ["SNAVIO_TEST_OUTBOX"]

    async def forward(messages):
        if any(message.body == "explode" for message in messages):
            raise ValueError("boom")
        living = [message for message in messages if message.body != "dead"]
        await anyio.sleep(float(os.environ.get("SNAVIO_TEST_SECONDS_A_BATCH", "0")))
        sent = iter(await aws.queues.send(outbox, [Outgoing(one.body) for one in living]) if living else [])
        worker.telemetry.measure(metrics.COMMANDS, len(living), service="fast", outcome="delivered")
        return [
            Dead("as requested") if one.body == "dead" else Done() if next(sent) is None else Retry("refused")
            for one in messages
        ]

    async def fail_when_told() -> None:
        if os.environ.get("SNAVIO_TEST_FAIL"):
            raise RuntimeError("told to fail")
        await anyio.sleep_forever()

    worker.background("obedient", fail_when_told)
    worker.consume(queues=aws.queues, queue=inbox, dlq=f"{inbox}-dlq", handler=forward)


if __name__ == "__main__":
    sys.exit(main("fast", CommonConfig, wire))
