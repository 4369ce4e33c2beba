"""Sending a batch: per destination, oversized payloads by claim check, failures judged one by one."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from snavio.aws.errors import SnavioError
from snavio.aws.ports import Objects
from snavio.aws.values import Outgoing
from snavio.dispatch.delivery import Delivery, Unsent
from snavio.dispatch.targets import leave_payload, target_message
from snavio.domain.cold import Refusal, RetryPolicy, after_failed_send
from snavio.domain.freshness import Phase
from snavio.domain.models import Route
from snavio.domain.warm import needs_claim_check
from snavio.registry.keeper import Keeper
from snavio.registry.uses import GrantUse, GrantUses
from snavio.runtime.outcome import Retry
from snavio.slow.case import Case
from snavio.wire.times import format_time


class Sending:
    """Sends every open command to its target."""

    def __init__(
        self,
        delivery: Delivery,
        objects: Objects,
        bucket: str,
        uses: GrantUses,
        policy: RetryPolicy,
        keeper: Keeper,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._delivery = delivery
        self._objects = objects
        self._bucket = bucket
        self._uses = uses
        self._policy = policy
        self._keeper = keeper
        self._clock = clock

    async def send(self, cases: list[Case]) -> None:
        """Send; each command leaves sent, refused, or to be tried again."""
        queues: dict[str, list[tuple[Case, Outgoing]]] = {}
        for case in cases:
            if case.open and case.eligible is not None:
                message = await self._message(case, case.eligible.route)
                if message is not None:
                    url = self._delivery.url_of(case.eligible.route.queue_arn)
                    queues.setdefault(url, []).append((case, message))
        async with anyio.create_task_group() as group:
            for queue, sends in queues.items():
                group.start_soon(self._send_to, queue, sends)

    async def _message(self, case: Case, route: Route) -> Outgoing | None:
        now = self._clock()
        payload_ref = None
        if needs_claim_check(case.command, route):
            try:
                payload_ref = await leave_payload(self._objects, self._bucket, case.command)
            except SnavioError as error:
                case.outcome = Retry(f"its payload could not be left for the target: {error}")
                return None
        if case.claim is not None and now >= case.claim.until:
            # Somebody else may be sending it by now.
            case.outcome = Retry("its claim ran out before it was sent")
            return None
        return target_message(
            case.command,
            path="slow",
            at_text=format_time(now),
            possible_duplicate=case.claim is not None and case.claim.possible_duplicate,
            payload_ref=payload_ref,
        )

    async def _send_to(self, queue: str, sends: list[tuple[Case, Outgoing]]) -> None:
        now = self._clock()
        sends = [(case, message) for case, message in sends if self._still_granted(case, now)]
        if not sends:
            return
        age = now - self._keeper.registry.as_of
        for case, _ in sends:
            command = case.command
            self._uses.note(GrantUse(command.source, command.target, command.name, command.id, now, age))
        answers = await self._delivery.send(queue, [message for _, message in sends])
        sent_at = self._clock()
        for (case, _), unsent in zip(sends, answers, strict=True):
            if unsent is None:
                case.sent_at = sent_at
            else:
                self._judge(case, unsent)

    def _still_granted(self, case: Case, now: float) -> bool:
        """Whether the grant stands where it is used.

        The registry may have read of a revocation since the command was examined, and looks back only on uses noted
        before it did: one noted afterwards would never be reported.
        """
        route = None if case.eligible is None else case.eligible.route
        phase = route and self._keeper.registry.grant_phase(case.command.source, route, now)
        if phase is None or phase is Phase.EXPIRED:
            case.outcome = Retry("its grant has to be looked at again", 0)
            return False
        return True

    def _judge(self, case: Case, unsent: Unsent) -> None:
        case.maybe_sent = unsent.uncertain
        verdict = after_failed_send(
            case.command,
            attempt=case.message.receive_count,
            permanent=unsent.permanent,
            cause=unsent.cause,
            policy=self._policy,
        )
        if isinstance(verdict, Refusal):
            case.refusal = verdict
        else:
            case.outcome = Retry(unsent.cause, verdict.seconds)
