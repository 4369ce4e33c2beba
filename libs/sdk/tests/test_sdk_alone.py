"""The SDK with only what it requires: no other part of the platform, no OpenTelemetry, no pydantic."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        ours = name.startswith("snavio.") and name.split(".")[1] not in ("sdk", "wire")
        if ours or name.split(".")[0] in ("opentelemetry", "pydantic", "structlog", "numpy"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from snavio.sdk import dynamodb_idempotency, producer, sync, target, telemetry, tracing
with tracing.sending("bot", "notify"), tracing.processing(
    target="bot", name="notify", source="a/b", command_id="c", traceparent="00-0-0-00", tracestate=None
):
    print(tracing.outgoing_context())
"""


def test_the_sdk_imports_and_works_without_anything_optional():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("(None, None)\n", "")
