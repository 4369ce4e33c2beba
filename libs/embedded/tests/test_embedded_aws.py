"""The embedded AWS: what it adds to MiniStack, and how it lives and dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session

from snavio.embedded.launch import embedded_aws

pytestmark = pytest.mark.aws

ACCOUNT = "000000000000"
SESSION = get_session()  # one: it keeps the service models it has read


def client(service, endpoint, credentials=None):
    keys = credentials or {"AccessKeyId": "test", "SecretAccessKey": "test"}
    return SESSION.create_client(
        service,
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys.get("SessionToken"),
    )


def role_credentials(endpoint, name, statements):
    iam = client("iam", endpoint)
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}]}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    policy = {"Version": "2012-10-17", "Statement": statements}
    iam.put_role_policy(RoleName=name, PolicyName="inline", PolicyDocument=json.dumps(policy))
    arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"
    return client("sts", endpoint).assume_role(RoleArn=arn, RoleSessionName="sender")["Credentials"]


def entry(bus, source, detail_type="snavio.command-sent"):
    return {"EventBusName": bus, "Source": source, "DetailType": detail_type, "Detail": "{}"}


@contextmanager
def refused(code="AccessDenied"):
    with pytest.raises(ClientError) as caught:
        yield
    assert code in caught.value.response["Error"]["Code"]


def allow_source(bus, source):
    return {
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Resource": f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/{bus}",
        "Condition": {"StringEquals": {"events:source": source}},
    }


def test_every_entry_is_held_to_the_allowed_source(aws_endpoint):
    root = client("events", aws_endpoint)
    for bus in ("source-a", "source-b"):
        root.create_event_bus(Name=bus)
    statements = [allow_source("source-a", "acme/billing"), allow_source("source-b", "acme/mail")]
    events = client("events", aws_endpoint, role_credentials(aws_endpoint, "sender-entries", statements))

    allowed = [entry("source-a", "acme/billing"), entry("source-b", "acme/mail")]
    assert events.put_events(Entries=allowed)["FailedEntryCount"] == 0
    for stranger in (
        entry("source-a", "acme/mail"),
        entry("source-b", "acme/billing"),
        entry("source-a", ""),
    ):
        with refused():
            events.put_events(Entries=[stranger])
        with refused():
            events.put_events(Entries=[*allowed, stranger])


def test_a_bus_policy_refuses_roles_it_does_not_name_by_their_role_arn(aws_endpoint):
    root = client("events", aws_endpoint)
    root.create_event_bus(Name="guarded")
    bus_arn = f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/guarded"
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "others",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "events:PutEvents",
                "Resource": bus_arn,
                "Condition": {
                    "ArnNotLike": {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/guarded-emit-*"}
                },
            }
        ],
    }
    root.put_permission(EventBusName="guarded", Policy=json.dumps(policy))
    assert json.loads(root.describe_event_bus(Name="guarded")["Policy"]) == policy

    anything = [{"Effect": "Allow", "Action": "events:*", "Resource": "*"}]
    emit = client("events", aws_endpoint, role_credentials(aws_endpoint, "guarded-emit-acme", anything))
    assert emit.put_events(Entries=[entry("guarded", "acme/billing")])["FailedEntryCount"] == 0
    other = client("events", aws_endpoint, role_credentials(aws_endpoint, "guarded-other", anything))
    with refused():
        other.put_events(Entries=[entry("guarded", "acme/billing")])


def test_state_survives_a_clean_restart_on_another_port(tmp_path):
    with embedded_aws(tmp_path) as endpoint:
        sqs = client("sqs", endpoint)
        queue = sqs.create_queue(QueueName="kept")["QueueUrl"]
        sqs.send_message(QueueUrl=queue, MessageBody="still here")
        client("s3", endpoint).create_bucket(Bucket="kept")
        client("s3", endpoint).put_object(Bucket="kept", Key="object", Body=b"bytes")
        client("events", endpoint).put_permission(EventBusName="default", Policy='{"Statement": []}')
    with embedded_aws(tmp_path) as endpoint:
        sqs = client("sqs", endpoint)
        queue = sqs.get_queue_url(QueueName="kept")["QueueUrl"]
        assert queue.startswith(endpoint)
        assert sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"] == "still here"
        assert client("s3", endpoint).get_object(Bucket="kept", Key="object")["Body"].read() == b"bytes"


def run_aws(*arguments):
    command = [sys.executable, "-m", "snavio.embedded.aws", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_port_in_use_is_one_clear_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_aws("--port", str(port), "--data-dir", str(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr == f"Port {port} cannot be used for the embedded AWS: Address already in use.\n"


def test_a_data_directory_serves_one_instance_only(tmp_path):
    with embedded_aws(tmp_path):
        ended = run_aws("--port", "0", "--data-dir", str(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr == f"The data directory {tmp_path} is in use by another running instance.\n"


def test_a_data_directory_that_cannot_be_made_is_one_clear_sentence(tmp_path):
    (tmp_path / "file").touch()
    ended = run_aws("--port", "0", "--data-dir", str(tmp_path / "file" / "below"))
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "cannot be written" in ended.stderr


def test_it_ends_and_saves_when_its_parent_is_killed(tmp_path):
    script = (
        "import sys; from pathlib import Path; from snavio.embedded.launch import embedded_aws\n"
        "with embedded_aws(Path(sys.argv[1])) as url: print(url, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        endpoint = parent.stdout.readline().strip()
        client("sqs", endpoint).create_queue(QueueName="kept")
        os.kill(parent.pid, signal.SIGKILL)
        # The embedded AWS inherited nothing but its pipes: they close when it has gone, and only then is the
        # directory free for the next instance.
        parent.wait(10)
    with waiting_for(tmp_path) as endpoint:
        assert client("sqs", endpoint).get_queue_url(QueueName="kept")


@contextmanager
def waiting_for(data_dir):
    import fcntl  # noqa: PLC0415

    with (data_dir / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # granted when the holder ends; the test's timeout is the deadline
    with embedded_aws(data_dir) as endpoint:
        yield endpoint
