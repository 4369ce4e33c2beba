"""What the pages and the examples show runs as it is written."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from snavio.domain.screening import Passed

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
BLOCKS = {
    match[1]: match[2]
    for match in re.finditer(
        r"```python\n# (\w+\.py)\n(.*?)```", (ROOT / "libs/sdk/README.md").read_text(), re.DOTALL
    )
}
DELIVERED = {
    "metadata": {
        "id": "0f8fad5b-d9cb-469f-a165-70867728950e",
        "timestamp": "2026-11-18T06:30:00Z",
        "type": "snavio.command-sent",
        "path": "fast",
        "dispatched_at": "2026-11-18T06:30:00Z",
        "possible_duplicate": False,
    },
    "command": {
        "source": "acme/billing",
        "target": "discord-bot",
        "name": "notify-user",
        "payload": {"user": 42, "text": "Paid."},
    },
}


@asynccontextmanager
async def running(stage, *command, stdin=None, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SNAVIO_"))}
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**kept, **stage.environment(), **more},
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    if stdin:
        process.stdin.write(stdin.encode())
        process.stdin.close()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def finished(process):
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def line_of(process):
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


def as_file(folder, name):
    path = folder / name
    path.write_text(BLOCKS[name])
    return str(path)


def test_the_readme_has_the_blocks_the_tests_run():
    assert set(BLOCKS) == {"send.py", "send_plainly.py", "receive.py", "listen.py", "test_billing.py"}


@pytest.mark.aws
@pytest.mark.parametrize("name", ["send.py", "send_plainly.py"])
async def test_the_readmes_producers_send(stage, tmp_path, name):
    async with running(stage, sys.executable, as_file(tmp_path, name)) as process:
        await finished(process)
    [[result]] = (await stage.arrived(1)).values()
    assert isinstance(result, Passed)
    assert json.loads(bytes(result.command.payload)) == {"user": 42, "text": "Your invoice is paid."}


@pytest.mark.aws
async def test_the_readmes_target_receives_and_drains_on_sigterm(stage, tmp_path, eventually):
    await stage.sqs.send_message(QueueUrl=stage.queue_url, MessageBody=json.dumps(DELIVERED))
    async with running(stage, sys.executable, as_file(tmp_path, "receive.py")) as process:
        assert await line_of(process) == "to 42: Paid."
        process.send_signal(signal.SIGTERM)
        await finished(process)
    assert await counted(stage, stage.queue_url) == 0


@pytest.mark.aws
async def test_the_readmes_listener_listens(stage, tmp_path):
    event = {
        "event": "snavio.secret.legacy_key_used",
        "event_id": "e-1",
        "tenant": "acme",
        "emitted_at": "2026-11-18T06:30:00Z",
        "version_id": "hmac-v0",
        "source": "acme/billing",
    }
    await stage.sqs.send_message(QueueUrl=stage.telemetry_url, MessageBody=json.dumps(event))
    async with running(stage, sys.executable, as_file(tmp_path, "listen.py")) as process:
        assert (await line_of(process)).startswith("LegacyKeyUsed(event_id='e-1'")


async def test_the_readmes_test_passes():
    scope = {}
    exec(BLOCKS["test_billing.py"], scope)
    await scope["test_a_paid_invoice_is_told"]()


@pytest.mark.aws
async def test_billing_sends_an_invoice_a_line(stage):
    lines = "".join(
        json.dumps({"number": f"i-{n}", "user": n, "amount": "9.99 EUR"}) + "\n" for n in range(12)
    )
    async with running(stage, sys.executable, str(EXAMPLES / "python/billing.py"), stdin=lines) as process:
        said = await finished(process)
    found = await stage.arrived(12)
    assert sorted(re.findall(r"sent as (\S+)", said)) == sorted(found)
    assert {result.command.correlation_id for [result] in found.values()} == {f"i-{n}" for n in range(12)}


@pytest.mark.aws
async def test_the_discord_bot_tells_each_once_and_buries_what_it_cannot(stage, eventually):
    table = f"handled-{stage.unique}"
    dynamodb = await stage.client("dynamodb")
    await dynamodb.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    unknown = {**DELIVERED, "command": {**DELIVERED["command"], "payload": {"user": 7, "text": "?"}}}
    unknown["metadata"] = {**DELIVERED["metadata"], "id": "another"}
    again = {**DELIVERED, "metadata": {**DELIVERED["metadata"], "possible_duplicate": True}}
    program = str(EXAMPLES / "python/discord_bot.py")
    async with running(stage, sys.executable, program, HANDLED_TABLE=table) as process:
        for delivered in (DELIVERED, unknown):
            await stage.sqs.send_message(QueueUrl=stage.queue_url, MessageBody=json.dumps(delivered))
        assert await line_of(process) == "acme/billing to ann: Paid."
        await stage.sqs.send_message(QueueUrl=stage.queue_url, MessageBody=json.dumps(again))

        async def all_done():
            return await counted(stage, stage.queue_url) == 0

        await eventually(all_done, within=60)
        process.send_signal(signal.SIGTERM)
        assert await finished(process) == ""
    answer = await stage.sqs.receive_message(
        QueueUrl=stage.dlq_url, WaitTimeSeconds=5, MessageAttributeNames=["All"]
    )
    [dead] = answer["Messages"]
    assert json.loads(dead["Body"]) == unknown
    assert dead["MessageAttributes"]["snavio.reason"]["StringValue"] == "nobody here has the number 7"


async def counted(stage, url):
    """Messages in a queue, in flight or not."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = await stage.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return sum(int(answer["Attributes"][name]) for name in names)


node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


@node
async def test_the_vectors_suffice_for_node():
    process = await asyncio.create_subprocess_exec(
        "node",
        str(EXAMPLES / "node/check-vectors.mjs"),
        str(ROOT / "docs/reference/signature-vectors.json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out = await finished(process)
    agreed, total = re.fullmatch(r"(\d+) of (\d+) agree\n", out).groups()
    assert agreed == total


@node
@pytest.mark.aws
async def test_a_command_from_node_is_genuine(stage):
    payload = {"größe": 1e21, "emoji": "🚀", "z": [1.50, -0.0, {}], "\ufb33": None}
    command = ("node", str(EXAMPLES / "node/send.mjs"), "discord-bot", "notify-user", json.dumps(payload))
    async with running(stage, *command) as process:
        sent = json.loads(await finished(process))
    found = await stage.arrived(1)
    assert list(found) == [sent["id"]]
    [[result]] = found.values()
    assert isinstance(result, Passed)
    assert json.loads(bytes(result.command.payload)) == payload
