"""The idempotency store of a fleet: one DynamoDB item a command, one conditional write a step.

The table has a string partition key `pk` and TTL on `expires_at`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from snavio.sdk.aws_session import refusal
from snavio.sdk.idempotency import Busy, Claim, Claimed, Finished

_MINE = "#owner = :owner AND #state = :claimed"
_NAMES = {"#owner": "owner", "#state": "state"}


class DynamoDbStore:
    """Remembers for every worker that uses the same table. `client` is an aiobotocore DynamoDB client."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        remember_seconds: float = 24 * 3600.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._table = table
        self._remember = remember_seconds
        self._now = now

    async def claim(self, key: str, owner: str, seconds: float) -> Claim:
        """Try to take it, with one conditional put."""
        now = self._now()
        try:
            answer = await self._client.put_item(
                TableName=self._table,
                Item={
                    "pk": {"S": key},
                    "owner": {"S": owner},
                    "state": {"S": "claimed"},
                    "claimed_until": {"N": f"{now + seconds:.3f}"},
                    "expires_at": self._expiry(now),
                },
                # TTL deletes late, so an item past its time counts as gone.
                ConditionExpression="attribute_not_exists(pk) OR expires_at <= :now_s"
                " OR (#state = :claimed AND (#owner = :owner OR claimed_until <= :now))",
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={
                    ":now": {"N": f"{now:.3f}"},
                    ":now_s": {"N": str(math.floor(now))},
                    ":claimed": {"S": "claimed"},
                    ":owner": {"S": owner},
                },
                ReturnValues="ALL_OLD",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            found = _refused(error)
            if found is None:
                raise
            if found.get("state", {}).get("S") == "finished":
                return Finished()
            return Busy(max(0.0, float(found.get("claimed_until", {}).get("N", now)) - now))
        old = answer.get("Attributes")
        return Claimed(repeated=bool(old) and float(old["expires_at"]["N"]) > math.floor(now))

    async def renew(self, key: str, owner: str, seconds: float) -> None:
        """Keep a claim."""
        until = {"N": f"{self._now() + seconds:.3f}"}
        await self._update(key, owner, "SET claimed_until = :until", {":until": until})

    async def finish(self, key: str, owner: str) -> None:
        """It was handled."""
        values = {":finished": {"S": "finished"}, ":expires": self._expiry(self._now())}
        await self._update(key, owner, "SET #state = :finished, expires_at = :expires", values)

    async def release(self, key: str, owner: str) -> None:
        """It was not handled."""
        try:
            await self._client.delete_item(
                TableName=self._table,
                Key={"pk": {"S": key}},
                ConditionExpression=_MINE,
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={":owner": {"S": owner}, ":claimed": {"S": "claimed"}},
            )
        except ClientError as error:
            if _refused(error) is None:
                raise

    async def _update(self, key: str, owner: str, change: str, values: dict[str, Any]) -> None:
        try:
            await self._client.update_item(
                TableName=self._table,
                Key={"pk": {"S": key}},
                UpdateExpression=change,
                ConditionExpression=_MINE,
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={
                    **values,
                    ":owner": {"S": owner},
                    ":claimed": {"S": "claimed"},
                },
            )
        except ClientError as error:
            # Somebody else has it by now, and what they record counts.
            if _refused(error) is None:
                raise

    def _expiry(self, now: float) -> dict[str, str]:
        return {"N": str(math.ceil(now + self._remember))}


def _refused(error: ClientError) -> dict[str, Any] | None:
    """The item that stood against a write; None when something else went wrong."""
    said = refusal(error)
    return said.item if said.code == "ConditionalCheckFailedException" else None
