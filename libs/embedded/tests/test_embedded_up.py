"""`snavio up` from outside: a real process, real signals, a real embedded AWS."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from botocore.session import get_session

from snavio.embedded.datadir import claimed
from snavio.embedded.errors import CannotStart
from snavio.embedded.up import Options, up

pytestmark = pytest.mark.aws

SESSION = get_session()  # one: it keeps the service models it has read
SCRIPT = """
import asyncio, sys
from pathlib import Path
from snavio.aws.errors import SnavioError
from snavio.embedded.up import Options, up
modules = {name: "fake_service" for name in ("gateway", "shield", "outbox")}
services = ("gateway", "shield", "outbox")
options = Options(data_dir=Path(sys.argv[1]), port_aws=0, port_http=0, services=services, modules=modules)
try:
    asyncio.run(up(options))
except SnavioError as error:
    sys.exit(str(error))
"""


class Platform:
    """A running platform and the journal of its services."""

    def __init__(self, process, journal):
        self.process = process
        self.ready = json.loads(process.stdout.readline() or "null")
        self._journal = journal

    def journal(self, what):
        lines = [json.loads(line) for line in self._journal.read_text().splitlines()]
        return {line["service"]: line for line in lines if line["what"] == what}

    def pids(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children]

    def client(self, service):
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        endpoint = self.ready["aws_endpoint_url"]
        return SESSION.create_client(service, region_name="us-east-1", endpoint_url=endpoint, **keys)


@contextmanager
def running(folder):
    folder.mkdir(exist_ok=True)
    journal = folder / "journal"
    journal.write_text("")
    # A person's own identity is in the way, as it often is.
    personal = {"AWS_ACCESS_KEY_ID": "AKIAPERSONAL", "AWS_SECRET_ACCESS_KEY": "theirs"}
    fake = {"PYTHONPATH": str(Path(__file__).parent), "FAKE_JOURNAL": str(journal), "FAKE_WHOAMI": "1"}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(folder / "data")],
            env={**os.environ, **personal, **fake},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield Platform(process, journal)
        finally:
            process.kill()


def wait_until_gone(pids):
    def is_gone(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    deadline = time.monotonic() + 60
    while not all(is_gone(pid) for pid in pids):
        assert time.monotonic() < deadline, "processes were left behind"
        time.sleep(0.05)


@pytest.mark.slow
def test_it_runs_each_service_with_its_own_role_stops_in_order_and_keeps_its_state(tmp_path):
    with running(tmp_path) as platform:
        assert set(platform.ready) == {"aws_endpoint_url", "http_url", "admin_token"}
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", platform.ready["http_url"])
        assert {name: line["arn"].split("/")[1] for name, line in platform.journal("start").items()} == {
            "gateway": "snavio-gateway",
            "shield": "snavio-shield",
            "outbox": "snavio-outbox",
        }
        sqs = platform.client("sqs")
        sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="snavio-fast")["QueueUrl"], MessageBody="kept")
        pids = platform.pids()
        assert len(pids) == 4
        platform.process.send_signal(signal.SIGTERM)
        assert platform.process.wait(60) == 0
        assert platform.process.stdout.read() == ""
        assert list(platform.journal("stop"))[2:] == ["outbox"]
        wait_until_gone(pids)

    with running(tmp_path) as platform:
        sqs = platform.client("sqs")
        queue = sqs.get_queue_url(QueueName="snavio-fast")["QueueUrl"]
        assert sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"] == "kept"
        assert "33 resources, 0 made or corrected" in (tmp_path / "log").read_text()

        # And killed outright, it leaves nothing behind either, and the directory can be used again.
        pids = platform.pids()
        platform.process.kill()
        platform.process.wait(60)
        wait_until_gone(pids)
        with claimed(tmp_path / "data"), claimed(tmp_path / "data" / "aws"):
            pass


def test_what_keeps_it_from_starting_is_one_clear_sentence(tmp_path):
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken, claimed(tmp_path / "claimed"):
        port = taken.getsockname()[1]
        cases = {
            f"Port {port} cannot be used for the embedded AWS: Address already in use.": (
                Options(port_aws=port, services=(), data_dir=tmp_path / "data")
            ),
            f"Port {port} cannot be used for HTTP: Address already in use.": (
                Options(
                    port_http=port,
                    services=("gateway",),
                    modules={"gateway": "json.tool"},
                    data_dir=tmp_path / "data",
                )
            ),
            f"The data directory {tmp_path}/file/below cannot be written: Not a directory.": (
                Options(data_dir=tmp_path / "file" / "below")
            ),
            f"The data directory {tmp_path}/claimed is in use by another running instance.": (
                Options(data_dir=tmp_path / "claimed")
            ),
            "There is no service slowest; there are gateway, shield, fast, slow, monitor, outbox.": (
                Options(services=("slowest",), data_dir=tmp_path / "data")
            ),
            "The service shield is not installed.": (
                Options(
                    services=("shield",), modules={"shield": "no.such.module"}, data_dir=tmp_path / "data"
                )
            ),
        }
        for sentence, options in cases.items():
            with pytest.raises(CannotStart) as caught:
                asyncio.run(up(options))
            assert str(caught.value) == sentence
