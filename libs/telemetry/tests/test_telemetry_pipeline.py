"""A tenant's pipeline under real policies: who can publish, who can read, what is filtered."""

import json
from contextlib import AsyncExitStack

import pytest
from botocore.exceptions import ClientError

from snavio.aws.errors import Permanent
from snavio.telemetry.pipeline import RETENTION_SECONDS, provision_pipeline, remove_pipeline
from snavio.telemetry.queue_reader import QueueReader

pytestmark = pytest.mark.aws


@pytest.fixture
async def root(platform):
    """Opens clients as root, closed with the test."""
    async with AsyncExitStack() as stack:
        opened = {}

        async def client(service):
            if service not in opened:
                opened[service] = await stack.enter_async_context(platform.client(service))
            return opened[service]

        yield client


async def tenant_role(root, names, tenant):
    """A role of the tenant's own that may do anything with SQS and SNS as far as its own policy goes."""
    iam = await root("iam")
    name = f"{names.prefix}-app-{tenant}"
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    everything = {"Effect": "Allow", "Action": ["sqs:*", "sns:*"], "Resource": "*"}
    await iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy(trust))
    await iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=_policy(everything))
    return name


def _policy(statement):
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


async def denied(call):
    try:
        await call
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] in {400, 403}
    return False


async def test_only_the_platform_publishes_and_only_the_tenant_reads(platform, root):
    names = platform.names
    roles = {tenant: await tenant_role(root, names, tenant) for tenant in ("acme", "rival")}
    pipelines = {
        tenant: await provision_pipeline(root, names, tenant, readers=[names.role_arn(role)])
        for tenant, role in roles.items()
    }
    acme = pipelines["acme"]
    attributes = {"event_type": {"DataType": "String", "StringValue": "snavio.command.failed"}}
    message = {"TopicArn": acme.topic_arn, "Message": '{"event": "x"}', "MessageAttributes": attributes}
    async with (
        platform.client("sns", role=names.role("outbox")) as outbox,
        platform.client("sns", role=roles["rival"]) as rival_sns,
        platform.client("sqs", role=roles["acme"]) as acme_sqs,
        platform.client("sqs", role=roles["rival"]) as rival_sqs,
    ):
        assert await denied(rival_sns.publish(**message))
        assert await denied(acme_sqs.send_message(QueueUrl=acme.queue_url, MessageBody="forged"))
        await outbox.publish(**message)
        assert await denied(rival_sqs.receive_message(QueueUrl=acme.queue_url))
        assert await denied(rival_sqs.purge_queue(QueueUrl=acme.queue_url))
        answer = await acme_sqs.receive_message(QueueUrl=acme.queue_url, MessageAttributeNames=["All"])
        (got,) = answer["Messages"]
        assert got["Body"] == '{"event": "x"}'
        assert got["MessageAttributes"]["event_type"]["StringValue"] == "snavio.command.failed"
        await acme_sqs.delete_message(QueueUrl=acme.queue_url, ReceiptHandle=got["ReceiptHandle"])


async def test_a_pipeline_is_brought_up_to_date_keeps_what_it_holds_and_can_be_removed(platform, root):
    names = platform.names
    sqs, sns = await root("sqs"), await root("sns")
    before = await provision_pipeline(root, names, "acme")
    after = await provision_pipeline(
        root, names, "acme", filter_policy={"event_type": ["snavio.command.failed"]}
    )
    assert before == after
    kept = (await sqs.get_queue_attributes(QueueUrl=after.queue_url, AttributeNames=["All"]))["Attributes"]
    assert kept["MessageRetentionPeriod"] == str(RETENTION_SECONDS)
    assert json.loads(kept["RedrivePolicy"])["deadLetterTargetArn"] == after.dlq_arn
    assert len((await sns.list_subscriptions_by_topic(TopicArn=after.topic_arn))["Subscriptions"]) == 1
    for event_type in ("snavio.command.delivered", "snavio.command.failed"):
        attributes = {"event_type": {"DataType": "String", "StringValue": event_type}}
        await sns.publish(TopicArn=after.topic_arn, Message=event_type, MessageAttributes=attributes)
    reader = QueueReader(root, names)
    (reading,) = [reading async for reading in reader.readings(0.0, 300.0)]
    assert (reading.tenant, reading.waiting, reading.retention_seconds) == ("acme", 1, RETENTION_SECONDS)
    (got,) = (await sqs.receive_message(QueueUrl=after.queue_url))["Messages"]
    assert got["Body"] == "snavio.command.failed"

    await remove_pipeline(root, names, "acme")
    await remove_pipeline(root, names, "acme")
    assert [reading async for reading in reader.readings(0.0, 300.0)] == []


async def test_a_tenant_whose_queue_could_not_be_named_is_refused_before_anything_is_made(platform, root):
    with pytest.raises(Permanent, match="too long"):
        await provision_pipeline(root, platform.names, "t" * 63)
