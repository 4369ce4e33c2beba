"""Least privilege, proved with each role's own credentials on an endpoint that enforces IAM."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack

import pytest
from botocore.exceptions import ClientError

pytestmark = [
    pytest.mark.aws,
    pytest.mark.skipif(
        os.environ.get("SNAVIO_TEST_LOCALSTACK") == "1", reason="LocalStack does not enforce IAM"
    ),
]


async def is_allowed(client, call, **arguments):
    """Whether IAM lets the call through; what the service then makes of it does not matter."""
    try:
        await getattr(client, call)(**arguments)
    except ClientError as error:
        # The JSON services refuse with a code and status 400, the others with 403.
        refused = "AccessDenied" in error.response["Error"]["Code"]
        return not refused and error.response["ResponseMetadata"]["HTTPStatusCode"] != 403
    return True


def entry(bus, source):
    return {"EventBusName": bus, "Source": source, "DetailType": "snavio.command-sent", "Detail": '{"a": 1}'}


async def make_emit_role(platform, tenant, sources):
    names = platform.names
    trust = {"Effect": "Allow", "Principal": {"AWS": names.account}, "Action": "sts:AssumeRole"}
    policy = {
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Resource": names.bus_arn,
        "Condition": {"StringEquals": {"events:source": sources}},
    }
    async with platform.client("iam") as iam:
        role = names.emit_role(tenant)
        await iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
        await iam.put_role_policy(
            RoleName=role, PolicyName="emit", PolicyDocument=json.dumps({"Statement": [policy]})
        )
    return role


async def test_a_tenant_emits_its_own_sources_and_no_other(platform):
    names = platform.names
    role = await make_emit_role(platform, "acme", ["acme/billing"])
    async with platform.client("events", role=role) as events, platform.client("sqs") as sqs:
        assert not await is_allowed(events, "put_events", Entries=[entry(names.bus, "globex/billing")])
        assert not await is_allowed(events, "put_events", Entries=[entry("default", "acme/billing")])
        mixed = [entry(names.bus, "acme/billing"), entry(names.bus, "globex/billing")]
        assert not await is_allowed(events, "put_events", Entries=mixed)

        answer = await events.put_events(Entries=[entry(names.bus, "acme/billing")])
        assert answer["FailedEntryCount"] == 0
        ingress = platform.queue_url(names.ingress)
        received = await sqs.receive_message(QueueUrl=ingress, WaitTimeSeconds=5, MaxNumberOfMessages=10)
        assert [json.loads(message["Body"])["source"] for message in received["Messages"]] == ["acme/billing"]


async def test_a_role_outside_the_emitters_cannot_reach_the_bus_whatever_its_own_policy_says(platform):
    names = platform.names
    anything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    trust = {
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": names.account}, "Action": "sts:AssumeRole"}]
    }
    role = names.role("stranger")
    async with platform.client("iam") as iam:
        await iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(trust))
        await iam.put_role_policy(RoleName=role, PolicyName="all", PolicyDocument=json.dumps(anything))
    async with platform.client("events", role=role) as events, platform.client("sqs", role=role) as sqs:
        assert not await is_allowed(events, "put_events", Entries=[entry(names.bus, "acme/billing")])
        ingress = platform.queue_url(names.ingress)
        assert not await is_allowed(sqs, "send_message", QueueUrl=ingress, MessageBody="forged")
    async with platform.client("events", role=names.role("replayer")) as events:
        assert await is_allowed(events, "put_events", Entries=[entry(names.bus, "acme/billing")])


def rights(platform, facts):
    """(service, AWS service, call, arguments, allowed): what each may do, and the nearest thing it may not."""
    names = platform.names
    url = platform.queue_url

    def put(table, **key):
        return {"TableName": table, "Item": {"pk": {"S": "a"}, **key}}

    def query(table):
        condition = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
        return {"TableName": table, **condition}

    def batch(queue):
        return {"QueueUrl": url(queue), "Entries": [{"Id": "0", "MessageBody": "x"}]}

    def receive(queue):
        return {"QueueUrl": url(queue), "WaitTimeSeconds": 0}

    sk, seq = {"sk": {"S": "a"}}, {"seq": {"N": "1"}}
    change = {
        "TransactItems": [{"Put": put(names.registry, **sk)}, {"Put": put(names.changelog, **seq)}],
    }
    telling = {"TransactItems": [{"Put": put(names.bans, **sk)}, {"Put": put(names.outbox, **sk)}]}
    sign = {"KeyId": names.snapshots_key, "Message": b"x", "SigningAlgorithm": "ECDSA_SHA_256"}
    data_key = {"KeyId": names.secrets_key, "KeySpec": "AES_256"}
    trust = json.dumps({"Statement": []})
    return [
        ("shield", "sqs", "receive_message", receive(names.ingress), True),
        ("shield", "sqs", "receive_message", receive(names.fast), False),
        ("shield", "sqs", "send_message_batch", batch(names.fast), True),
        ("shield", "sqs", "send_message_batch", batch(names.dlq(names.ingress)), True),
        ("shield", "sqs", "send_message_batch", batch(names.slow), False),
        ("shield", "sqs", "send_message_batch", batch("a-target"), False),
        ("shield", "dynamodb", "query", query(names.changelog), True),
        ("shield", "dynamodb", "put_item", put(names.registry, **sk), False),
        ("shield", "dynamodb", "put_item", put(names.outbox, **sk), True),
        ("shield", "kms", "decrypt", {"CiphertextBlob": facts["sealed"]}, True),
        ("shield", "kms", "generate_data_key", data_key, False),
        (
            "shield",
            "s3",
            "get_object",
            {"Bucket": names.bucket, "Key": "snavio/registry/acl/latest.json"},
            True,
        ),
        (
            "shield",
            "s3",
            "put_object",
            {"Bucket": names.bucket, "Key": "snavio/registry/acl/latest.json"},
            False,
        ),
        ("fast", "sqs", "receive_message", receive(names.fast), True),
        ("fast", "sqs", "send_message_batch", batch(names.slow), True),
        ("fast", "sqs", "send_message_batch", batch("a-target"), True),
        ("fast", "sqs", "send_message_batch", batch(names.ingress), False),
        ("fast", "sqs", "send_message_batch", batch(names.telemetry("acme")), False),
        ("fast", "dynamodb", "put_item", put(names.limits), True),
        ("fast", "dynamodb", "put_item", put(names.dedupe), False),
        ("fast", "dynamodb", "transact_write_items", change, False),
        ("fast", "kms", "decrypt", {"CiphertextBlob": facts["sealed"]}, False),
        ("slow", "dynamodb", "transact_write_items", change, True),
        ("slow", "dynamodb", "put_item", put(names.dedupe), True),
        ("slow", "dynamodb", "put_item", put(names.control, **sk), False),
        ("slow", "s3", "put_object", {"Bucket": names.bucket, "Key": "claims/a"}, True),
        ("slow", "s3", "put_object", {"Bucket": names.bucket, "Key": "snavio/a"}, False),
        ("outbox", "dynamodbstreams", "describe_stream", {"StreamArn": facts["stream"]}, True),
        ("outbox", "dynamodbstreams", "get_records", {"ShardIterator": facts["iterator"]}, True),
        ("shield", "dynamodbstreams", "get_records", {"ShardIterator": facts["iterator"]}, False),
        (
            "outbox",
            "sns",
            "publish",
            {"TopicArn": names.topic_arn(names.telemetry("acme")), "Message": "x"},
            True,
        ),
        ("outbox", "sns", "publish", {"TopicArn": names.topic_arn("elsewhere"), "Message": "x"}, False),
        ("outbox", "dynamodb", "query", query(names.registry), False),
        ("monitor", "kms", "sign", sign, True),
        ("gateway", "kms", "sign", sign, False),
        (
            "monitor",
            "sqs",
            "get_queue_attributes",
            {"QueueUrl": url("a-target"), "AttributeNames": ["All"]},
            True,
        ),
        ("monitor", "sqs", "receive_message", receive("a-target"), False),
        ("monitor", "s3", "put_object", {"Bucket": names.bucket, "Key": "snavio/a"}, True),
        ("monitor", "dynamodb", "put_item", put(names.leases), True),
        (
            "gateway",
            "iam",
            "create_role",
            {"RoleName": names.emit_role("a"), "AssumeRolePolicyDocument": trust},
            True,
        ),
        (
            "gateway",
            "iam",
            "create_role",
            {"RoleName": names.role("b"), "AssumeRolePolicyDocument": trust},
            False,
        ),
        ("gateway", "sqs", "create_queue", {"QueueName": names.telemetry("acme")}, True),
        ("gateway", "sqs", "create_queue", {"QueueName": "elsewhere"}, False),
        ("gateway", "sqs", "receive_message", receive(names.telemetry("acme")), False),
        ("gateway", "dynamodb", "transact_write_items", change, True),
        ("gateway", "kms", "generate_data_key", data_key, True),
        ("auditor", "dynamodb", "query", query(names.stats), True),
        ("auditor", "dynamodb", "scan", {"TableName": names.stats}, False),
        ("auditor", "dynamodb", "put_item", put(names.stats, **sk), False),
        ("auditor", "dynamodb", "transact_write_items", change, True),
        ("auditor", "dynamodb", "put_item", put(names.outbox, **sk), True),
        ("auditor", "dynamodb", "transact_write_items", telling, True),
        ("auditor", "dynamodb", "query", query(names.bans), False),
        ("auditor", "dynamodb", "put_item", put(names.limits), False),
        ("auditor", "s3", "put_object", {"Bucket": names.bucket, "Key": "lake/a"}, True),
        ("auditor", "s3", "put_object", {"Bucket": names.bucket, "Key": "spark/a"}, False),
        ("auditor", "s3", "get_object", {"Bucket": names.bucket, "Key": "spark/a"}, True),
        ("auditor", "s3", "get_object", {"Bucket": names.bucket, "Key": "snavio/a"}, False),
        ("auditor", "sqs", "receive_message", receive(names.fast), False),
    ]


async def gather_facts(platform):
    names = platform.names
    async with platform.client("kms") as kms, platform.client("dynamodb") as dynamodb:
        sealed = await kms.generate_data_key(KeyId=names.secrets_key, KeySpec="AES_256")
        stream = (await dynamodb.describe_table(TableName=names.outbox))["Table"]["LatestStreamArn"]
    async with platform.client("dynamodbstreams") as streams:
        shard = (await streams.describe_stream(StreamArn=stream))["StreamDescription"]["Shards"][0]["ShardId"]
        iterator = await streams.get_shard_iterator(
            StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )
    return {"sealed": sealed["CiphertextBlob"], "stream": stream, "iterator": iterator["ShardIterator"]}


async def test_each_service_can_do_its_work_and_nothing_else(platform):
    async with platform.client("sqs") as sqs:
        await sqs.create_queue(QueueName="a-target")
    facts = await gather_facts(platform)
    wrong = []
    async with AsyncExitStack() as stack:
        clients = {}
        for service, aws, call, arguments, allowed in rights(platform, facts):
            if (service, aws) not in clients:
                client = platform.client(aws, role=platform.names.role(service))
                clients[service, aws] = await stack.enter_async_context(client)
            if await is_allowed(clients[service, aws], call, **arguments) is not allowed:
                wrong.append(
                    (service, call, arguments, "should be allowed" if allowed else "should be refused")
                )
    assert wrong == []
