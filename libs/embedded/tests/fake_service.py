"""A service that only lives and dies, for the supervisor's tests. What it does is told by FAKE_* variables."""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PORTS = {
    name.removeprefix("SNAVIO_").removesuffix("_HEALTH_PORT").lower(): int(value)
    for name, value in os.environ.items()
    if name.startswith("SNAVIO_") and name.endswith("_HEALTH_PORT")
}
((NAME, PORT),) = PORTS.items()


def note(what, **more):
    with Path(os.environ["FAKE_JOURNAL"]).open("a") as journal:
        journal.write(json.dumps({"service": NAME, "what": what, "pid": os.getpid(), **more}) + "\n")


class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if os.environ.get("FAKE_UNREADY") == NAME else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


def whoami():
    from botocore.session import get_session  # noqa: PLC0415 - slow, and most tests do not ask

    return get_session().create_client("sts").get_caller_identity()["Arn"]


def stop(*_):
    if os.environ.get("FAKE_STUBBORN") == NAME:
        return
    note("stop")
    os._exit(0)


signal.signal(signal.SIGTERM, stop)
if os.environ.get("FAKE_MISCONFIGURED") == NAME:
    sys.exit(78)
if os.environ.get("FAKE_CRASHING") == NAME:
    note("start")
    sys.exit(3)
server = HTTPServer(("127.0.0.1", PORT), Health)
note("start", arn=whoami() if os.environ.get("FAKE_WHOAMI") else None)
line = {"timestamp": "2026-11-18T06:30:00.123Z", "level": "info", "event": "fake.started"}
sys.stderr.write(json.dumps(line) + "\n")
threading.Thread(target=server.serve_forever).start()
