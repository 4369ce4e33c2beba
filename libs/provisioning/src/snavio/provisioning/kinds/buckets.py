"""S3 buckets."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from snavio.provisioning.answers import code_of, within
from snavio.provisioning.reconcile import State
from snavio.provisioning.resources import Bucket

_CLOSED = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
_ENCRYPTED = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
_UNSET = {
    "NoSuchLifecycleConfiguration",
    "NoSuchPublicAccessBlockConfiguration",
    "ServerSideEncryptionConfigurationNotFoundError",
}
_ELSEWHERE = "us-east-1"
"""The one region that must not be named when a bucket is made there."""


class BucketResource:
    """The bucket of the platform."""

    kind = "bucket"

    def __init__(self, bucket: Bucket, s3: Any, *, region: str) -> None:
        self.name = bucket.name
        self._bucket = bucket
        self._s3 = s3
        self._region = region

    def desired(self) -> State:
        """Versioned, encrypted, closed to the public, and emptied of what has expired."""
        return {
            "versioning": "Enabled",
            "encryption": "AES256",
            "public access": _CLOSED,
            "lifecycle": _summary(self._lifecycle()),
        }

    async def observe(self) -> State | None:
        """The four configurations as they are."""
        try:
            await self._s3.head_bucket(Bucket=self.name)
        except ClientError as error:
            if code_of(error) in {"404", "NoSuchBucket", "NotFound"}:
                return None
            raise
        versioning = await self._s3.get_bucket_versioning(Bucket=self.name)
        encryption = await self._read("get_bucket_encryption", "ServerSideEncryptionConfiguration")
        closed = await self._read("get_public_access_block", "PublicAccessBlockConfiguration")
        lifecycle = await self._read("get_bucket_lifecycle_configuration", "Rules")
        return {
            "versioning": versioning.get("Status"),
            "encryption": _algorithm(encryption),
            "public access": closed,
            "lifecycle": _summary(lifecycle or []),
        }

    async def create(self) -> State:
        """Make it empty of configuration; everything is corrected next."""
        place = (
            {"CreateBucketConfiguration": {"LocationConstraint": self._region}}
            if self._region != _ELSEWHERE
            else {}
        )
        await self._s3.create_bucket(Bucket=self.name, **place)
        return {}

    async def correct(self, wrong: frozenset[str]) -> None:
        """Put the configurations that differ."""
        bucket = {"Bucket": self.name}
        if "versioning" in wrong:
            await self._s3.put_bucket_versioning(**bucket, VersioningConfiguration={"Status": "Enabled"})
        if "encryption" in wrong:
            await self._s3.put_bucket_encryption(**bucket, ServerSideEncryptionConfiguration=_ENCRYPTED)
        if "public access" in wrong:
            await self._s3.put_public_access_block(**bucket, PublicAccessBlockConfiguration=_CLOSED)
        if "lifecycle" in wrong:
            rules = {"Rules": self._lifecycle()}
            await self._s3.put_bucket_lifecycle_configuration(**bucket, LifecycleConfiguration=rules)

    async def _read(self, call: str, field: str) -> Any:
        try:
            return (await getattr(self._s3, call)(Bucket=self.name)).get(field)
        except ClientError as error:
            if code_of(error) in _UNSET:
                return None
            raise

    def _lifecycle(self) -> list[dict[str, Any]]:
        expiring = [
            {
                "ID": f"expire {expiry.prefix}",
                "Status": "Enabled",
                "Filter": {"Prefix": expiry.prefix},
                "Expiration": {"Days": expiry.days},
            }
            for expiry in self._bucket.expiries
        ]
        tidy = {
            "ID": "tidy",
            "Status": "Enabled",
            "Filter": {"Prefix": ""},
            "NoncurrentVersionExpiration": {"NoncurrentDays": self._bucket.old_versions_days},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        }
        return [*expiring, tidy]


def _algorithm(configuration: Any) -> object:
    rules: list[Any] = within(configuration, "Rules") or [None]
    return within(rules[0], "ApplyServerSideEncryptionByDefault", "SSEAlgorithm")


def _summary(rules: list[dict[str, Any]]) -> object:
    return sorted(
        (
            str(rule.get("ID")),
            str(rule.get("Status")),
            str(within(rule, "Filter", "Prefix") or ""),
            int(within(rule, "Expiration", "Days") or 0),
            int(within(rule, "NoncurrentVersionExpiration", "NoncurrentDays") or 0),
            int(within(rule, "AbortIncompleteMultipartUpload", "DaysAfterInitiation") or 0),
        )
        for rule in rules
    )
