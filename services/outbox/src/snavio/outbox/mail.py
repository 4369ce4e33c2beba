"""Mails an alert through SES: a summary as subject, the alert as JSON in the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import SnavioError, Transient
from snavio.telemetry.alerts import body, subject
from snavio.telemetry.deliveries import GiveUp, Result, Sent, TryAgain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from snavio.telemetry.alerts import Alert
    from snavio.telemetry.channels import Email


class Mails:
    """Sends alerts from one address."""

    def __init__(self, client: Callable[[str], Awaitable[Any]], sender: str | None) -> None:
        self._client = client
        self._sender = sender

    async def send(self, alert: Alert, channel: Email) -> Result:
        """Send once."""
        if self._sender is None:
            return GiveUp("no sender address is configured")
        content = msgspec.json.format(body(alert), indent=2).decode()
        ses = await self._client("sesv2")
        try:
            with translated("SendEmail"):
                answer = await ses.send_email(
                    FromEmailAddress=self._sender,
                    Destination={"ToAddresses": list(channel.to)},
                    Content={
                        "Simple": {
                            "Subject": {"Data": subject(alert), "Charset": "UTF-8"},
                            "Body": {"Text": {"Data": content, "Charset": "UTF-8"}},
                        }
                    },
                )
        except Transient as error:
            return TryAgain(str(error))
        except SnavioError as error:
            return GiveUp(str(error))
        return Sent(str(answer.get("MessageId", "")))
