"""A target that sends messages to people, once each, and gives up on those who have left.

Environment: QUEUE_URL, HANDLED_TABLE (a DynamoDB table with the key `pk`), AWS credentials and region.
"""  # noqa: INP001 - an example, not a package

from __future__ import annotations

import logging
import os

import msgspec

from snavio.sdk.errors import RejectCommand
from snavio.sdk.handlers import Context
from snavio.sdk.target import Target

PEOPLE = {42: "ann", 43: "bob"}

logging.basicConfig(level=logging.INFO)
app = Target("discord-bot", os.environ["QUEUE_URL"], idempotency_table=os.environ["HANDLED_TABLE"])


class NotifyUser(msgspec.Struct):
    """Somebody should be told something."""

    user: int
    text: str


@app.command("notify-user", concurrency=5, timeout_seconds=30)
async def notify_user(command: NotifyUser, context: Context) -> None:
    """Tell one person."""
    name = PEOPLE.get(command.user)
    if name is None:
        raise RejectCommand(f"nobody here has the number {command.user}")
    print(f"{context.source} to {name}: {command.text}", flush=True)  # noqa: T201


app.run()
