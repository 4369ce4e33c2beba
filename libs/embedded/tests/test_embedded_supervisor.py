"""The supervisor with real processes that only live and die."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import sys
from pathlib import Path

import anyio
import pytest

from snavio.embedded.console import Console
from snavio.embedded.errors import CannotStart
from snavio.embedded.ports import free_port
from snavio.embedded.supervisor import Patience, ServiceSpec, Supervisor

PATIENCE = Patience(ready_seconds=30, stop_seconds=20, backoff_seconds=0.05, max_backoff_seconds=0.2)


class Stage:
    """A supervisor, the journal of its services and what it said."""

    def __init__(self, folder, *, patience=PATIENCE, **fake):
        self.journal_file = folder / "journal"
        self.journal_file.touch()
        self.said = io.StringIO()
        self.hurry = asyncio.Event()
        self.ready = asyncio.Event()
        self.scope = anyio.CancelScope()
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent),
            "FAKE_JOURNAL": str(self.journal_file),
            **{f"FAKE_{name.upper()}": value for name, value in fake.items()},
        }

        def spec(name, stage):
            port = free_port(what=name)
            own = {f"SNAVIO_{name.upper()}_HEALTH_PORT": str(port)}
            return ServiceSpec(
                name=name,
                module="fake_service",
                health_port=port,
                stage=stage,
                environment={**environment, **own},
            )

        specs = [spec("outbox", 2), spec("fast", 1), spec("shield", 0), spec("gateway", 0)]
        self.supervisor = Supervisor(specs, Console(self.said), hurry=self.hurry, patience=patience)

    def journal(self, what, service=None):
        lines = [json.loads(line) for line in self.journal_file.read_text().splitlines()]
        return [line for line in lines if line["what"] == what and service in {None, line["service"]}]

    async def run(self):
        with self.scope:
            await self.supervisor.run(self.ready.set)

    async def until(self, condition):
        while not condition():  # noqa: ASYNC110 - other processes are waited for; the test's timeout is the deadline
            await anyio.sleep(0.02)


def is_gone(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


async def test_stages_stop_in_order_and_nothing_is_left(tmp_path):
    stage = Stage(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.run)
        await stage.ready.wait()
        stage.scope.cancel()
    stopped = [line["service"] for line in stage.journal("stop")]
    assert sorted(stopped[:2]) == ["gateway", "shield"]
    assert stopped[2:] == ["fast", "outbox"]
    assert all(is_gone(line["pid"]) for line in stage.journal("start"))
    assert "fast     06:30:00.123 info    fake.started" in stage.said.getvalue()


async def test_a_service_that_dies_comes_back_and_the_others_stay(tmp_path):
    stage = Stage(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.run)
        await stage.ready.wait()
        (first,) = stage.journal("start", "fast")
        os.kill(first["pid"], signal.SIGKILL)
        await stage.until(lambda: len(stage.journal("start", "fast")) == 2)
        stage.scope.cancel()
    assert len(stage.journal("start")) == 5
    assert "fast was ended by signal 9; starting it again in 0.0 s" in stage.said.getvalue()


async def test_backoff_grows_while_a_service_keeps_dying(tmp_path, monkeypatch):
    monkeypatch.setattr("random.random", lambda: 0.0)
    stage = Stage(tmp_path, crashing="fast", patience=Patience(backoff_seconds=0.1, max_backoff_seconds=0.4))
    async with anyio.create_task_group() as group:
        group.start_soon(stage.run)
        await stage.until(lambda: stage.said.getvalue().count("starting it again") == 5)
        stage.scope.cancel()
    said = [line.split(" in ")[1] for line in stage.said.getvalue().splitlines() if "again in" in line]
    assert said == ["0.1 s", "0.1 s", "0.2 s", "0.2 s", "0.2 s"]
    assert not stage.ready.is_set()


async def test_a_service_that_will_not_stop_is_killed_in_a_hurry(tmp_path):
    stage = Stage(tmp_path, stubborn="shield", patience=Patience(stop_seconds=1000))
    async with anyio.create_task_group() as group:
        group.start_soon(stage.run)
        await stage.ready.wait()
        stage.scope.cancel()
        await stage.until(lambda: stage.journal("stop", "gateway"))
        assert not stage.journal("stop", "fast")
        stage.hurry.set()
    assert all(is_gone(line["pid"]) for line in stage.journal("start"))


@pytest.mark.parametrize(
    ("fake", "patience", "sentence"),
    [
        (
            {"misconfigured": "fast"},
            PATIENCE,
            "^The service fast refuses its settings; it says above which.$",
        ),
        ({"unready": "fast"}, Patience(ready_seconds=2), "^Not ready within 2 s: .*fast"),
    ],
)
async def test_a_service_that_can_never_run_stops_the_rest(tmp_path, fake, patience, sentence):
    stage = Stage(tmp_path, patience=patience, **fake)
    with pytest.raises(BaseExceptionGroup) as caught:
        await stage.run()
    reasons, others = caught.value.split(CannotStart)
    assert others is None
    (reason,) = reasons.exceptions
    assert re.search(sentence, str(reason))
    assert all(is_gone(line["pid"]) for line in stage.journal("start"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_services_do_not_outlive_a_supervisor_that_is_killed(tmp_path):
    script = (
        "import anyio, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from test_embedded_supervisor import Stage\n"
        "async def main(): await Stage(Path(sys.argv[2]), stubborn='outbox').run()\n"
        "anyio.run(main)"
    )
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path)
    )
    journal = tmp_path / "journal"
    while not journal.exists() or journal.read_text().count("start") < 4:  # noqa: ASYNC110
        await anyio.sleep(0.02)
    supervisor.kill()
    await supervisor.wait()
    pids = [json.loads(line)["pid"] for line in journal.read_text().splitlines()]
    while not all(is_gone(pid) for pid in pids):  # noqa: ASYNC110
        await anyio.sleep(0.05)
