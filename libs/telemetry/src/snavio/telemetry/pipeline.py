"""A tenant's telemetry pipeline: topic, queue and dead-letter queue, made or brought up to date.

Run it when a tenant is registered, and whenever the roles that may read change. The operators' own pipeline is the
same thing for the tenant `_platform`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from snavio.aws.boto.faults import translated
from snavio.aws.errors import Permanent
from snavio.telemetry.pipeline_policies import dlq_policy, queue_policy, topic_policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from snavio.wire.names import Names

RETENTION_SECONDS = 14 * 24 * 3600
"""How long SQS keeps telemetry a tenant does not read: the longest it can."""
_MAX_QUEUE_NAME = 80
_RECEIVES = 10
_VISIBILITY_SECONDS = 60


class Pipeline(msgspec.Struct, frozen=True):
    """Where a tenant's telemetry flows."""

    topic_arn: str
    queue_arn: str
    queue_url: str
    dlq_arn: str


async def provision_pipeline(
    client: Callable[[str], Awaitable[Any]],
    names: Names,
    tenant: str,
    *,
    readers: Sequence[str] = (),
    publishers: Sequence[str] | None = None,
    filter_policy: Mapping[str, Sequence[Any]] | None = None,
) -> Pipeline:
    """Make the pipeline, or change what differs; safe to repeat.

    `client` opens raw aiobotocore clients by service. `readers` are the ARNs of the roles that may read: with none,
    nobody may. `publishers` are by default the outbox worker's role alone. A `filter_policy` such as
    `{"event_type": ["snavio.command.failed"]}` keeps everything else out of the queue; None lets everything in.
    """
    name = names.telemetry(tenant)
    if len(names.dlq(name)) > _MAX_QUEUE_NAME:
        raise Permanent(f"The tenant name {tenant} is too long for a queue of its own.", code="NameTooLong")
    sns, sqs = await client("sns"), await client("sqs")
    topic_arn, queue_arn = names.topic_arn(name), names.queue_arn(name)
    dlq_arn = names.queue_arn(names.dlq(name))
    root = f"arn:{names.partition}:iam::{names.account}:root"
    roles = [names.role_arn(names.role("outbox"))] if publishers is None else list(publishers)

    with translated("CreateTopic"):
        await sns.create_topic(Name=name)
    with translated("SetTopicAttributes"):
        await sns.set_topic_attributes(
            TopicArn=topic_arn, AttributeName="Policy", AttributeValue=topic_policy(topic_arn, roles, root)
        )
    await _queue(sqs, names.dlq(name), {"Policy": dlq_policy(dlq_arn, topic_arn, readers, root)})
    redrive = {"deadLetterTargetArn": dlq_arn, "maxReceiveCount": _RECEIVES}
    queue_url = await _queue(
        sqs,
        name,
        {
            "Policy": queue_policy(queue_arn, topic_arn, readers, root),
            "RedrivePolicy": json.dumps(redrive),
            "VisibilityTimeout": str(_VISIBILITY_SECONDS),
        },
    )
    await _subscribe(sns, topic_arn, queue_arn, dlq_arn, filter_policy)
    return Pipeline(topic_arn, queue_arn, queue_url, dlq_arn)


async def remove_pipeline(client: Callable[[str], Awaitable[Any]], names: Names, tenant: str) -> None:
    """Remove a tenant's pipeline with everything in it; safe to repeat."""
    sns, sqs = await client("sns"), await client("sqs")
    name = names.telemetry(tenant)
    with translated("DeleteTopic"):
        await sns.delete_topic(TopicArn=names.topic_arn(name))
    for queue in (name, names.dlq(name)):
        try:
            with translated("DeleteQueue"):
                url = (await sqs.get_queue_url(QueueName=queue))["QueueUrl"]
                await sqs.delete_queue(QueueUrl=url)
        except Permanent as error:
            if "NonExistent" not in error.code and "DoesNotExist" not in error.code:
                raise


async def _queue(sqs: Any, name: str, attributes: dict[str, str]) -> str:
    # Creating a queue that exists with other attributes is an error, so it is created bare and then brought in line.
    with translated("CreateQueue"):
        url = str((await sqs.create_queue(QueueName=name))["QueueUrl"])
    wanted = {
        "MessageRetentionPeriod": str(RETENTION_SECONDS),
        # SNS can send to a queue encrypted by SQS's own keys without a grant on a KMS key shared by all tenants.
        "SqsManagedSseEnabled": "true",
        **attributes,
    }
    with translated("SetQueueAttributes"):
        await sqs.set_queue_attributes(QueueUrl=url, Attributes=wanted)
    return url


async def _subscribe(
    sns: Any,
    topic_arn: str,
    queue_arn: str,
    dlq_arn: str,
    filter_policy: Mapping[str, Sequence[Any]] | None,
) -> None:
    # As with queues: subscribing again with other attributes is an error in SNS, so they are set one by one.
    with translated("Subscribe"):
        answer = await sns.subscribe(
            TopicArn=topic_arn, Protocol="sqs", Endpoint=queue_arn, ReturnSubscriptionArn=True
        )
    wanted = {
        "RawMessageDelivery": "true",
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": dlq_arn}),
        "FilterPolicy": json.dumps(filter_policy or {}),
    }
    for attribute, value in wanted.items():
        with translated("SetSubscriptionAttributes"):
            await sns.set_subscription_attributes(
                SubscriptionArn=answer["SubscriptionArn"], AttributeName=attribute, AttributeValue=value
            )
