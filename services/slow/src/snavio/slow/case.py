"""One command in slow's hands, from decoding to its outcome."""

from __future__ import annotations

from snavio.aws.values import Received
from snavio.dispatch.claim_store import Held
from snavio.domain.cold import Eligible, Refusal
from snavio.runtime.outcome import Outcome
from snavio.wire.commands import Admitted, Escalated


class Case:
    """What is known of one message while its batch is worked on.

    Open while it is on its way to being sent; it leaves by `refusal`, by `sent_at` or by an `outcome` of its own.
    """

    __slots__ = (
        "claim",
        "command",
        "eligible",
        "escalated",
        "maybe_sent",
        "message",
        "outcome",
        "refusal",
        "sent_at",
        "shadowed_ms",
    )

    def __init__(self, message: Received, escalated: Escalated) -> None:
        self.message = message
        self.escalated = escalated
        self.command: Admitted = escalated.command
        self.eligible: Eligible | None = None
        self.claim: Held | None = None
        self.refusal: Refusal | None = None
        self.sent_at: float | None = None
        self.maybe_sent = False
        """The send was not answered: its claim must stand."""
        self.shadowed_ms: int | None = None
        """A limit in shadow mode would have refused it, for so long."""
        self.outcome: Outcome | None = None

    @property
    def open(self) -> bool:
        """Whether it is still on its way to being sent."""
        return (
            self.eligible is not None
            and self.outcome is None
            and self.refusal is None
            and self.sent_at is None
        )

    @property
    def pair(self) -> tuple[str, str]:
        """Its (target, command)."""
        return self.command.target, self.command.name
