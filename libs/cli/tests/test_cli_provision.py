"""`snavio provision` on a real endpoint."""

from __future__ import annotations

import json

import pytest

from snavio.cli.main import main

pytestmark = pytest.mark.aws


@pytest.fixture
def on_the_endpoint(platform, monkeypatch):
    for name, value in platform.environment().items():
        monkeypatch.setenv(name, value)
    return platform


def test_it_plans_then_provisions_then_finds_nothing_to_do(on_the_endpoint, capsys):
    assert main(["provision", "--archive-days", "3", "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert f"archive   {on_the_endpoint.names.archive}  correct retention" in plan
    assert "1 of 33 resources would change." in plan

    assert main(["provision", "--archive-days", "3", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["dry_run"] is False
    assert [change["aspects"] for change in done["changes"]] == [["retention"]]

    assert main(["provision", "--archive-days", "3"]) == 0
    assert capsys.readouterr().out == "All 33 resources are as described.\n"


def test_no_region_is_one_clear_sentence(on_the_endpoint, capsys, monkeypatch):
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "nowhere")
    assert main(["provision"]) == 1
    assert capsys.readouterr().err == "Error: No AWS region is configured: set AWS_REGION.\n"
