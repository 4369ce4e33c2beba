"""The gateway as a process: configured by its environment, drained by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from queue import Queue
from typing import Any

import jwt
import pytest

from snavio.gateway.config import GatewayConfig
from snavio.runtime.config import load
from snavio.runtime.errors import ConfigError

pytestmark = pytest.mark.aws
SECRET = "a secret for tests, of thirty-two bytes and more"


def test_a_gateway_that_could_know_nobody_does_not_start():
    with pytest.raises(ConfigError, match="SNAVIO_GATEWAY_JWT_SECRET_FILE"):
        load(GatewayConfig, {}, service="gateway")


def test_it_serves_until_it_is_told_to_stop_and_then_ends_cleanly(platform, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    environment = {
        **platform.environment(platform.names.role("gateway")),
        "PATH": "",
        "SNAVIO_GATEWAY_PORT": "0",
        "SNAVIO_GATEWAY_JWT_SECRET_FILE": str(secret),
        "SNAVIO_GATEWAY_REQUESTS_PER_MINUTE": "1",
        "SNAVIO_GATEWAY_REQUEST_BURST": "2",
        "SNAVIO_ACCOUNT": platform.names.account,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "snavio.gateway"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        lines = Lines(process)
        port = lines.until("http.listening")["port"]
        lines.until("worker.started")
        base = f"http://127.0.0.1:{port}"
        assert get(f"{base}/readyz")[0] == 200
        token = jwt.encode({"sub": "op", "roles": ["Admin"], "exp": 9_999_999_999}, SECRET, algorithm="HS256")
        statuses = [get(f"{base}/api/v1/tenants", token)[0] for _ in range(3)]
        assert statuses == [200, 200, 429]
        seen = lines.until("http.request")
        assert (seen["actor"], seen["status"], seen["path"]) == ("op", 200, "/api/v1/tenants")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Lines:
    """The log of a process, read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._lines: Queue[bytes] = Queue()
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def until(self, event: str) -> dict[str, Any]:
        seen: list[bytes] = []
        while line := self._lines.get(timeout=60):
            seen.append(line)
            if f'"{event}"'.encode() in line:
                return json.loads(line)
        raise AssertionError(b"".join(seen).decode())

    def _read(self, stream: Any) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(b"")


def get(url: str, token: str = "") -> tuple[int, Any]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
