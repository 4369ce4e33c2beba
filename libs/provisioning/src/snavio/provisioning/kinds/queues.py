"""SQS queues."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from snavio.provisioning.answers import code_of
from snavio.provisioning.policies import document, meaning
from snavio.provisioning.reconcile import State
from snavio.provisioning.resources import Queue

_ABSENT = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
_POLICY = "Policy"
_REDRIVE = "RedrivePolicy"
_ALLOW = "RedriveAllowPolicy"
_DATA_KEY_REUSE_SECONDS = 300


class QueueResource:
    """A queue of the platform; every aspect is an attribute, set all at once."""

    kind = "queue"

    def __init__(self, queue: Queue, sqs: Any, arn_prefix: str) -> None:
        self.name = queue.name
        self._queue = queue
        self._sqs = sqs
        self._arn = arn_prefix

    def desired(self) -> State:
        """The attributes, with those that are documents in comparable form."""
        return {key: _comparable(key, value) for key, value in self._attributes().items()}

    async def observe(self) -> State | None:
        """The attributes as they are."""
        try:
            url = await self._url()
        except ClientError as error:
            if code_of(error) in _ABSENT:
                return None
            raise
        answer = await self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        found: dict[str, str] = answer.get("Attributes", {})
        return {key: _comparable(key, found.get(key, "")) for key in self._attributes()}

    async def create(self) -> State:
        """Make it with all its attributes."""
        given = {key: value for key, value in self._attributes().items() if value}
        await self._sqs.create_queue(QueueName=self.name, Attributes=given)
        return self.desired()

    async def correct(self, wrong: frozenset[str]) -> None:
        """Set the attributes that differ."""
        attributes = self._attributes()
        await self._sqs.set_queue_attributes(
            QueueUrl=await self._url(), Attributes={key: attributes[key] for key in sorted(wrong)}
        )

    async def _url(self) -> str:
        return (await self._sqs.get_queue_url(QueueName=self.name))["QueueUrl"]

    def _attributes(self) -> dict[str, str]:
        queue = self._queue
        attributes = {
            "VisibilityTimeout": str(queue.visibility_seconds),
            "MessageRetentionPeriod": str(queue.retention_seconds),
            "KmsMasterKeyId": queue.key,
            "KmsDataKeyReusePeriodSeconds": str(_DATA_KEY_REUSE_SECONDS),
            # Empty is what SQS calls having no policy.
            _POLICY: json.dumps(document(queue.policy)) if queue.policy else "",
        }
        if queue.dlq:
            redrive = {"deadLetterTargetArn": self._arn + queue.dlq, "maxReceiveCount": queue.max_receives}
            attributes[_REDRIVE] = json.dumps(redrive)
        if queue.source:
            allow = {"redrivePermission": "byQueue", "sourceQueueArns": [self._arn + queue.source]}
            attributes[_ALLOW] = json.dumps(allow)
        return attributes


def _comparable(attribute: str, value: str) -> object:
    if attribute == _POLICY:
        return meaning(value)
    if attribute in {_REDRIVE, _ALLOW} and value:
        # SQS takes the count as a number or as text, and gives back either.
        return {key: str(each) for key, each in json.loads(value).items()}
    return value
