"""Provisioning on a real endpoint: once, twice, over what is half made, and over drift."""

from __future__ import annotations

import json

import msgspec
import pytest

from snavio.aws.errors import Permanent, Transient
from snavio.provisioning.apply import apply
from snavio.provisioning.describe import Settings, describe

pytestmark = pytest.mark.aws


def apply_to(platform, settings=None, **options):
    return apply(
        describe(platform.names, settings), platform.session, endpoint_url=platform.endpoint_url, **options
    )


async def test_applying_again_changes_nothing(platform):
    report = await apply_to(platform)
    assert report.resources == 33
    assert report.changes == ()


async def test_a_half_made_platform_is_completed(platform):
    names = platform.names
    async with (
        platform.client("sqs") as sqs,
        platform.client("dynamodb") as dynamodb,
        platform.client("iam") as iam,
    ):
        await sqs.delete_queue(QueueUrl=platform.queue_url(names.fast))
        await dynamodb.delete_table(TableName=names.outbox)
        await iam.delete_role_policy(RoleName=names.role("shield"), PolicyName="platform")
        await iam.delete_role(RoleName=names.role("shield"))
    async with platform.client("events") as events:
        await events.remove_targets(Rule=names.rule, EventBusName=names.bus, Ids=["queue"])

    planned = await apply_to(platform, dry_run=True)
    report = await apply_to(platform)

    assert {(change.kind, change.name, change.action, change.aspects) for change in report.changes} == {
        ("queue", names.fast, "create", ()),
        ("table", names.outbox, "create", ()),
        ("role", names.role("shield"), "create", ()),
        ("rule", names.rule, "correct", ("target",)),
    }
    assert planned.changes == report.changes
    assert (await apply_to(platform)).changes == ()


async def test_drift_is_corrected(platform):
    names = platform.names
    anyone = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    open_to_all = {
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "events:*", "Resource": names.bus_arn}]
    }
    async with (
        platform.client("sqs") as sqs,
        platform.client("iam") as iam,
        platform.client("events") as events,
    ):
        await sqs.set_queue_attributes(
            QueueUrl=platform.queue_url(names.ingress), Attributes={"VisibilityTimeout": "1", "Policy": ""}
        )
        await iam.put_role_policy(
            RoleName=names.role("fast"), PolicyName="extra", PolicyDocument=json.dumps(anyone)
        )
        await iam.put_role_policy(
            RoleName=names.role("slow"), PolicyName="platform", PolicyDocument=json.dumps(anyone)
        )
        await events.put_permission(EventBusName=names.bus, Policy=json.dumps(open_to_all))
        await events.disable_rule(Name=names.rule, EventBusName=names.bus)
        stranger = {"Id": "tap", "Arn": names.queue_arn(names.slow)}
        await events.put_targets(Rule=names.capture_rule, EventBusName=names.bus, Targets=[stranger])
        await events.update_archive(ArchiveName=names.archive, RetentionDays=1)
    async with (
        platform.client("dynamodb") as dynamodb,
        platform.client("s3") as s3,
        platform.client("kms") as kms,
    ):
        await dynamodb.update_table(TableName=names.outbox, StreamSpecification={"StreamEnabled": False})
        off = {"AttributeName": "expires_at", "Enabled": False}
        await dynamodb.update_time_to_live(TableName=names.dedupe, TimeToLiveSpecification=off)
        await s3.delete_bucket_lifecycle(Bucket=names.bucket)
        await s3.delete_public_access_block(Bucket=names.bucket)
        await kms.disable_key_rotation(
            KeyId=(await kms.describe_key(KeyId=names.secrets_key))["KeyMetadata"]["KeyId"]
        )

    report = await apply_to(platform)

    assert {(change.name, change.aspects) for change in report.changes} == {
        (names.ingress, ("Policy", "VisibilityTimeout")),
        (names.role("fast"), ("other policies",)),
        (names.role("slow"), ("policy",)),
        (names.bus, ("policy",)),
        (names.rule, ("state",)),
        (names.capture_rule, ("target",)),
        (names.archive, ("retention",)),
        (names.outbox, ("stream",)),
        (names.dedupe, ("expiry",)),
        (names.bucket, ("lifecycle", "public access")),
        (names.secrets_key, ("rotation",)),
    }
    assert (await apply_to(platform)).changes == ()


async def test_other_settings_correct_only_what_they_touch(platform):
    report = await apply_to(platform, Settings(archive_days=3, claim_days=20))
    assert {(change.kind, change.aspects) for change in report.changes} == {
        ("archive", ("retention",)),
        ("bucket", ("lifecycle",)),
    }


async def test_a_dry_run_on_an_empty_account_writes_nothing(platform):
    absent = msgspec.structs.replace(platform.names, prefix=platform.names.prefix + "-dry")
    for _ in range(2):
        plan = await apply(
            describe(absent), platform.session, endpoint_url=platform.endpoint_url, dry_run=True
        )
        assert len(plan.changes) == plan.resources == 33


async def test_a_table_with_another_key_is_refused_by_name(platform):
    names = platform.names
    async with platform.client("dynamodb") as dynamodb:
        await dynamodb.delete_table(TableName=names.leases)
        await dynamodb.create_table(
            TableName=names.leases,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    with pytest.raises(Permanent, match=f"The table {names.leases} exists with another key"):
        await apply_to(platform)


async def test_an_endpoint_that_does_not_answer_is_transient(platform, unused_tcp_port):
    with pytest.raises(Transient, match="could not be reached"):
        await apply(
            describe(platform.names), platform.session, endpoint_url=f"http://127.0.0.1:{unused_tcp_port}"
        )
