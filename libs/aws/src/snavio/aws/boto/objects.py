"""The `Objects` port on S3 through aiobotocore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snavio.aws.boto.faults import translated
from snavio.aws.errors import ConditionFailed, Permanent
from snavio.aws.retry import retried
from snavio.aws.values import StoredObject

if TYPE_CHECKING:
    from snavio.aws.boto.clients import Clients


class S3Objects:
    """`Objects` on S3."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def get(self, bucket: str, key: str, *, max_bytes: int | None = None) -> StoredObject:
        """The object; `Permanent` with code `TooLarge` when over `max_bytes`, its bytes unread."""
        return await retried(lambda: self._get(bucket, key, max_bytes), repeatable=True)

    async def put(
        self, bucket: str, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write and return the new entity tag; `ConditionFailed` when another writer was first."""
        if if_match is not None and if_absent:
            raise Permanent("An object cannot both match a tag and be absent.", code="InvalidRequest")
        parameters: dict[str, Any] = {"Bucket": bucket, "Key": key, "Body": body}
        if if_match is not None:
            parameters["IfMatch"] = if_match
        if if_absent:
            parameters["IfNoneMatch"] = "*"
        try:
            answer = await self._call("put_object", parameters, repeatable=if_match is None and not if_absent)
        except Permanent as fault:
            # S3 answers 404 when the object to match has gone.
            if fault.code == "PreconditionFailed" or (if_match is not None and fault.code == "NoSuchKey"):
                raise ConditionFailed(str(fault)) from fault
            raise
        return str(answer["ETag"])

    async def delete(self, bucket: str, key: str) -> None:
        """Remove the object; removing an absent one is no error."""
        await self._call("delete_object", {"Bucket": bucket, "Key": key}, repeatable=True)

    async def _get(self, bucket: str, key: str, max_bytes: int | None) -> StoredObject:
        client = await self._clients.port("s3")
        with translated("get_object"):
            answer = await client.get_object(Bucket=bucket, Key=key)
            # Leaving the body unread closes its connection: the bytes do not travel.
            async with answer["Body"] as body:
                size = int(answer["ContentLength"])
                if max_bytes is not None and size > max_bytes:
                    raise Permanent(f"{key} holds {size} bytes, more than {max_bytes}.", code="TooLarge")
                return StoredObject(await body.read(), str(answer["ETag"]))

    async def _call(self, method: str, parameters: dict[str, Any], *, repeatable: bool) -> dict[str, Any]:
        client = await self._clients.port("s3")

        async def act() -> dict[str, Any]:
            with translated(method):
                return await getattr(client, method)(**parameters)

        return await retried(act, repeatable=repeatable)
