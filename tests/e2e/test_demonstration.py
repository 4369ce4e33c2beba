"""What a newcomer types first shows what it claims."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.aws, pytest.mark.slow, pytest.mark.timeout(400)]

CLI = [sys.executable, "-c", "import sys; from snavio.cli.main import main; sys.exit(main())"]


def test_every_claim_of_the_demonstration_holds(tmp_path):
    log = tmp_path / "platform.log"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SNAVIO_"))}
    ended = subprocess.run(
        [*CLI, "demo", "--json", "--keep-log", str(log)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    tail = log.read_text().splitlines()[-20:] if log.exists() else []
    assert ended.returncode == 0, "\n".join([ended.stdout, ended.stderr, *tail])
    shown = json.loads(ended.stdout)
    assert shown["ok"] is True
    assert len(shown["checks"]) >= 19
