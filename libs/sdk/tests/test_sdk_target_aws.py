"""A target on real SQS and S3: what only the real queue can show."""

from __future__ import annotations

import asyncio
import hashlib
import json

import msgspec
import pytest

from snavio.sdk.intake import TargetOptions
from snavio.sdk.target import Target

pytestmark = pytest.mark.aws


def delivered(command_id, **command):
    return json.dumps(
        {
            "metadata": {
                "id": command_id,
                "timestamp": "2026-11-18T06:30:00Z",
                "type": "snavio.command-sent",
                "path": "slow",
                "dispatched_at": "2026-11-18T06:30:00Z",
                "possible_duplicate": False,
            },
            "command": {"source": "acme/billing", "target": "bot", "name": "notify", **command},
        }
    )


async def test_two_workers_share_a_queue_and_a_long_command_stays_with_one(stage, eventually):
    """The handler takes twice the visibility; without a heartbeat the other worker would run it as well."""
    calls = []

    def worker():
        options = TargetOptions(visibility_seconds=2, wait_seconds=1)
        app = Target("bot", stage.queue_url, aws=stage.aws(), options=options)

        @app.command("notify")
        async def handle(cmd: str):
            calls.append(cmd)
            if cmd == "long":
                await asyncio.sleep(4)

        return app, asyncio.create_task(app.serve())

    for number in range(9):
        body = delivered(str(number), payload="long" if number == 4 else "short")
        await stage.sqs.send_message(QueueUrl=stage.queue_url, MessageBody=body)
    workers = [worker(), worker()]

    async def empty():
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = await stage.sqs.get_queue_attributes(QueueUrl=stage.queue_url, AttributeNames=names)
        return not any(int(answer["Attributes"][name]) for name in names)

    await eventually(empty, within=60)
    for app, _ in workers:
        app.drain()
    await asyncio.gather(*(serving for _, serving in workers))
    assert sorted(calls) == ["long", *["short"] * 8]


async def test_a_payload_in_s3_reaches_the_handler(stage, eventually):
    payload = json.dumps({"text": "x" * 300_000}).encode()
    bucket = f"claims-{stage.unique}"
    s3 = await stage.client("s3")
    await s3.create_bucket(Bucket=bucket)
    await s3.put_object(Bucket=bucket, Key="claim/1", Body=payload)
    ref = {
        "bucket": bucket,
        "key": "claim/1",
        "bytes": len(payload),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    await stage.sqs.send_message(QueueUrl=stage.queue_url, MessageBody=delivered("1", payload_ref=ref))
    seen = []
    app = Target("bot", stage.queue_url, aws=stage.aws(), options=TargetOptions(wait_seconds=1))

    @app.command("notify")
    async def handle(cmd: dict):
        seen.append(msgspec.json.encode(cmd))

    serving = asyncio.create_task(app.serve())
    await eventually(lambda: seen, within=60)
    app.drain()
    await serving
    assert json.loads(seen[0]) == json.loads(payload)


async def test_a_queue_that_does_not_exist_is_said_at_once(stage):
    app = Target("bot", stage.queue_url + "-nowhere", aws=stage.aws())
    with pytest.raises(Exception, match=r"NonExistentQueue|QueueDoesNotExist"):
        await app.serve()
