"""DynamoDB tables."""

from __future__ import annotations

from typing import Any

import anyio
from botocore.exceptions import ClientError

from snavio.aws.errors import Permanent, Transient
from snavio.provisioning.answers import code_of, within
from snavio.provisioning.reconcile import State
from snavio.provisioning.resources import Table

_TTL_ATTRIBUTE = "expires_at"
_POLL_SECONDS = 0.5
_ACTIVE_SECONDS = 120.0


class TableResource:
    """A table of the platform."""

    kind = "table"

    def __init__(self, table: Table, dynamodb: Any) -> None:
        self.name = table.name
        self._table = table
        self._dynamodb = dynamodb

    def desired(self) -> State:
        """Billing, stream, expiry and recovery; the key cannot be corrected and is only checked."""
        return {
            "billing": "PAY_PER_REQUEST",
            "stream": "NEW_IMAGE" if self._table.stream else None,
            "expiry": _TTL_ATTRIBUTE if self._table.expires else None,
            "recovery": self._table.recoverable,
        }

    async def observe(self) -> State | None:
        """What DynamoDB says of the table."""
        described = await self._describe()
        if described is None:
            return None
        schema = {key["KeyType"]: key["AttributeName"] for key in described["KeySchema"]}
        if schema != {key["KeyType"]: key["AttributeName"] for key in self._schema()}:
            raise Permanent(
                f"The table {self.name} exists with another key, which cannot be changed: delete it, or choose another prefix."
            )
        streaming = within(described, "StreamSpecification", "StreamEnabled")
        return {
            "billing": within(described, "BillingModeSummary", "BillingMode"),
            "stream": within(described, "StreamSpecification", "StreamViewType") if streaming else None,
            "expiry": await self._expiry(),
            "recovery": await self._recovery(),
        }

    async def create(self) -> State:
        """Make it and wait until it can be used; expiry and recovery can only be set then."""
        stream = {"StreamSpecification": _stream(enabled=True)} if self._table.stream else {}
        types = dict([("pk", "S"), *([self._table.sort] if self._table.sort else [])])
        await self._dynamodb.create_table(
            TableName=self.name,
            KeySchema=self._schema(),
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
            ],
            BillingMode="PAY_PER_REQUEST",
            **stream,
        )
        await self._until_active()
        return {**self.desired(), "expiry": None, "recovery": False}

    async def correct(self, wrong: frozenset[str]) -> None:
        """One call for each aspect: DynamoDB takes one change of a table at a time."""
        if "billing" in wrong:
            await self._dynamodb.update_table(TableName=self.name, BillingMode="PAY_PER_REQUEST")
            await self._until_active()
        if "stream" in wrong:
            await self._correct_stream()
        if "expiry" in wrong:
            specification = {"AttributeName": _TTL_ATTRIBUTE, "Enabled": self._table.expires}
            await self._dynamodb.update_time_to_live(
                TableName=self.name, TimeToLiveSpecification=specification
            )
        if "recovery" in wrong:
            await self._correct_recovery()

    def _schema(self) -> list[dict[str, str]]:
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
        if self._table.sort:
            schema.append({"AttributeName": self._table.sort[0], "KeyType": "RANGE"})
        return schema

    async def _describe(self) -> dict[str, Any] | None:
        try:
            return (await self._dynamodb.describe_table(TableName=self.name))["Table"]
        except ClientError as error:
            if code_of(error) == "ResourceNotFoundException":
                return None
            raise

    async def _expiry(self) -> str | None:
        answer = await self._dynamodb.describe_time_to_live(TableName=self.name)
        found: dict[str, Any] = answer["TimeToLiveDescription"]
        return (
            found.get("AttributeName") if found.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"} else None
        )

    async def _recovery(self) -> bool:
        answer = await self._dynamodb.describe_continuous_backups(TableName=self.name)
        path = ("ContinuousBackupsDescription", "PointInTimeRecoveryDescription", "PointInTimeRecoveryStatus")
        return within(answer, *path) == "ENABLED"

    async def _correct_stream(self) -> None:
        if within(await self._describe(), "StreamSpecification", "StreamEnabled"):
            # The view of a stream cannot be changed: only another stream can take its place.
            await self._dynamodb.update_table(TableName=self.name, StreamSpecification=_stream(enabled=False))
            await self._until_active()
        if self._table.stream:
            await self._dynamodb.update_table(TableName=self.name, StreamSpecification=_stream(enabled=True))
            await self._until_active()

    async def _correct_recovery(self) -> None:
        specification = {"PointInTimeRecoveryEnabled": self._table.recoverable}
        with anyio.move_on_after(_ACTIVE_SECONDS):
            while True:
                try:
                    await self._dynamodb.update_continuous_backups(
                        TableName=self.name, PointInTimeRecoverySpecification=specification
                    )
                except ClientError as error:
                    # Backups of a new table come up a little after the table.
                    if code_of(error) != "ContinuousBackupsUnavailableException":
                        raise
                    await anyio.sleep(_POLL_SECONDS)
                else:
                    return
        raise Transient(
            f"Backups of the table {self.name} were not available within {_ACTIVE_SECONDS:.0f} s."
        )

    async def _until_active(self) -> None:
        with anyio.move_on_after(_ACTIVE_SECONDS):
            while True:
                described = await self._describe()
                if described and described["TableStatus"] == "ACTIVE":
                    return
                await anyio.sleep(_POLL_SECONDS)
        raise Transient(f"The table {self.name} was not active within {_ACTIVE_SECONDS:.0f} s.")


def _stream(*, enabled: bool) -> dict[str, Any]:
    return {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"} if enabled else {"StreamEnabled": False}
