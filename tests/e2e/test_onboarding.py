"""The onboarding page, typed line by line at a platform that is up; then what an operator does with it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "onboard.md"
CLI = [sys.executable, "-c", "import sys; from snavio.cli.main import main; sys.exit(main())"]


class Shell:
    """A terminal in the directory where the platform was started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        hidden = ("AWS_", "SNAVIO_")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | {
            "COLUMNS": "300"
        }
        self.announced: dict[str, Any] = {}

    def type(self, line: str) -> str:
        """Run one line as it stands; its output. It must succeed."""
        ended = self.run(*shlex.split(line)[1:])
        log = (self._folder / "log").read_text().splitlines()[-20:]
        assert ended.returncode == 0, "\n".join([line, ended.stdout, ended.stderr, *log])
        return ended.stdout

    def json(self, *arguments: str) -> Any:
        """What a command answers programs."""
        return json.loads(self.type(shlex.join(["snavio", *arguments, "--json"])))

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLI, *arguments],
            cwd=self._folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("onboarding")
    shell = Shell(folder)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*CLI, "up", "--port-aws", "0", "--port-http", "0"],
            cwd=folder,
            env=shell.environment,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            shell.announced = json.loads(line)
            yield shell
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            finally:
                process.kill()
                process.stdout.close()
    assert not (folder / ".snavio" / "connection.json").exists()


def lines_of(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_line_of_the_onboarding_page_works_and_the_first_command_arrives(shell):
    told = {line: shell.type(line) for line in lines_of(PAGE)}
    assert len(told) >= 10
    (delivered,) = (out for line, out in told.items() if "telemetry tail" in line)
    # One command in a hundred is a sample of its sender's clock as well, and the first may be escalated.
    assert "command.delivered acme/billing discord-bot notify-user" in delivered
    assert "✗" not in told["snavio doctor"]

    session = Session()
    session.set_credentials("test", "test")
    sqs = session.create_client(
        "sqs", region_name="us-east-1", endpoint_url=shell.announced["aws_endpoint_url"]
    )
    url = sqs.get_queue_url(QueueName="bot-commands")["QueueUrl"]
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
    assert json.loads(message["Body"])["command"] == {
        "source": "acme/billing",
        "target": "discord-bot",
        "name": "notify-user",
        "payload": {"user": 42, "text": "Paid."},
    }
    sqs.close()


def test_an_operator_sees_changes_and_undoes_them(shell):
    shell.type("snavio tenant add ops")
    shell.type("snavio service add ops/cron --new-sender ops-cron")
    shell.type(
        "snavio route set worker run --new-queue worker-run --tenant ops --limit 50/s --burst 100 --dedupe strict"
    )
    (route,) = shell.json("route", "list", "--target", "worker")
    assert (route["rate_limit"]["limit"], route["rate_limit"]["burst"], route["dedupe_mode"]) == (
        50,
        100,
        "strict",
    )
    shell.type("snavio acl allow ops/cron worker run --expires-in 2h")
    shell.type("snavio acl deny ops/cron worker run")
    change = shell.json("changelog", "list", "--kind", "grant")["changes"][-1]
    shell.type(f"snavio changelog rollback {change['seq']}")
    assert [each["source"] for each in shell.json("acl", "list", "worker", "run")] == ["ops/cron"]

    shell.type("snavio keys rotate ops/cron --expected hmac-v1")
    assert [key["version_id"] for key in shell.json("keys", "list", "ops/cron")] == [
        "hmac-v1",
        "hmac-v2",
    ]
    shell.type("snavio ban set ops/cron --mode cold-only --for 15m --reason 'too noisy'")
    assert [each["mode"] for each in shell.json("ban", "list")] == ["cold-only"]
    shell.type("snavio ban lift ops/cron")
    shell.type("snavio quota set ops/cron worker run 10/s")
    assert shell.json("quota", "list", "ops/cron")[0]["rate_limit"]["limit"] == 10
    shell.type("snavio settings set --dispatch-mode as-configured")
    assert "snavio-up" in shell.type("snavio changelog audit --limit 500")

    # The doctor says what is wrong: here, that somebody widened an emit role by hand.
    session = Session()
    session.set_credentials("test", "test")
    iam = session.create_client(
        "iam", region_name="us-east-1", endpoint_url=shell.announced["aws_endpoint_url"]
    )
    everything = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "events:PutEvents", "Resource": "*"}],
    }
    iam.put_role_policy(RoleName="snavio-emit-ops", PolicyName="emit", PolicyDocument=json.dumps(everything))
    iam.close()
    ended = shell.run("doctor", "--json")
    assert ended.returncode == 1
    bad = [finding["check"] for finding in json.loads(ended.stdout) if finding["verdict"] == "bad"]
    assert bad == ["tenant ops"]
    shell.type("snavio tenant remove ops --yes")
    assert shell.run("doctor").returncode == 0


def test_a_refusal_is_told_with_every_fault_and_a_tenant_is_kept_to_its_own(shell):
    shell.run("tenant", "add", "small")
    ended = shell.run("route", "set", "Bad", "ping", "--queue", "x", "--tenant", "small")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "target: The target must be" in ended.stderr
    token = shell.type("snavio token small").strip()
    ended = shell.run("tenant", "add", "other", SNAVIO_CLI_TOKEN=token)
    assert (ended.returncode, ended.stderr.strip()) == (
        1,
        "Error: This is for administrators of the platform.",
    )
    ended = shell.run("tenant", "list", SNAVIO_CLI_DATA_DIR="nowhere")
    assert ended.returncode == 1
    assert "SNAVIO_CLI_URL and SNAVIO_CLI_TOKEN" in ended.stderr
