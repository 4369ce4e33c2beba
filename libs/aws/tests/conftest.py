"""A local AWS for the contract suites, started once a run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory):
    given = os.environ.get("SNAVIO_AWS_ENDPOINT_URL")
    if given:
        yield given
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("ministack")
    environment = os.environ | {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": str(folder),
        "S3_DATA_DIR": str(folder / "s3"),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"], env=environment, stdout=log, stderr=log, cwd=folder
        )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(endpoint, process)
        yield endpoint
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_healthy(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch):
    """Whatever the machine's own AWS variables say, tests speak to the local one as root."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
