"""The frame every command stands in."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from snavio.cli.commands import COMMANDS, Entry
from snavio.cli.lazy import LazyGroup
from snavio.cli.main import main, root
from snavio.cli.parameters import EVENT


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_can_be_loaded_and_shows_examples(name):
    shown = CliRunner().invoke(root, [name, "--help"])
    assert shown.exit_code == 0
    assert f"\n    snavio {name}" in shown.output


def test_help_imports_no_command_and_no_aws_client():
    check = (
        "import sys; from snavio.cli.main import main; main(['--help']);"
        "print([name for name in sys.modules if name in {'botocore', 'rich', 'snavio.cli.up', 'snavio.embedded.up'}])"
    )
    ended = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"
    assert "provision" in ended.stdout


def test_a_wrong_command_is_wrong_usage(capsys):
    assert main(["upp"]) == 2
    assert "No such command 'upp'" in capsys.readouterr().err


def test_an_error_raised_on_purpose_is_one_sentence_and_exit_code_1(capsys, monkeypatch):
    monkeypatch.setenv("SNAVIO_PREFIX", "p")
    assert main(["up", "--services", "nothing"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("Error: There is no service nothing")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_version_speaks_to_machines(capsys):
    assert main(["version", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"snavio", "python"}


def test_an_entry_that_is_not_asked_for_is_never_imported():
    group = LazyGroup(
        "g", {"broken": Entry("no.such:module", "Breaks."), "ok": COMMANDS["version"]}, help="Two commands."
    )
    runner = CliRunner()
    assert "Breaks." in runner.invoke(group, ["--help"]).output
    assert runner.invoke(group, ["ok"]).exit_code == 0


def test_an_event_is_named_with_or_without_its_prefix_and_no_other_is_taken(capsys):
    convert = EVENT.convert
    assert {convert(typed, None, None) for typed in ("command.delivered", "snavio.command.delivered")} == {
        "snavio.command.delivered"
    }
    assert main(["telemetry", "tail", "acme", "--event", "delivered"]) == 2
    assert "'delivered' is no event; there are command.delivered, " in capsys.readouterr().err
