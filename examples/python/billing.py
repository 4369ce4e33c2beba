"""A producer that reads invoices, one JSON object a line on standard input, and has each customer told.

Environment: SNAVIO_URL, SNAVIO_TOKEN, SNAVIO_SOURCE, AWS credentials and region.
"""  # noqa: INP001 - an example, not a package

from __future__ import annotations

import asyncio
import os
import sys

import msgspec

from snavio.sdk.errors import InvalidCommandError, SendError
from snavio.sdk.producer import Producer


class Invoice(msgspec.Struct):
    """What billing knows."""

    number: str
    user: int
    amount: str


async def main() -> None:
    """Send a command for each invoice, all at once, and say how each one went."""
    url, token, source = (os.environ[name] for name in ("SNAVIO_URL", "SNAVIO_TOKEN", "SNAVIO_SOURCE"))
    invoices = [msgspec.json.decode(line, type=Invoice) for line in sys.stdin if line.strip()]
    async with Producer(url, token, source=source) as producer, asyncio.TaskGroup() as group:
        for invoice in invoices:
            group.create_task(tell(producer, invoice))


async def tell(producer: Producer, invoice: Invoice) -> None:
    """Have one customer told."""
    payload = {"user": invoice.user, "text": f"Invoice {invoice.number} over {invoice.amount} is paid."}
    try:
        sent = await producer.send("discord-bot", "notify-user", payload, correlation_id=invoice.number)
        print(f"{invoice.number}: sent as {sent.id}")  # noqa: T201
    except (InvalidCommandError, SendError) as error:
        print(f"{invoice.number}: {error}")  # noqa: T201


asyncio.run(main())
