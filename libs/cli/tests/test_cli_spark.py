"""`snavio spark` finds the platform that `snavio up` runs beside it."""

from __future__ import annotations

import os

import pytest

from snavio.cli.spark import embedded_aws
from snavio.cli.spark import spark as group
from snavio.embedded.announcement import Announcement, remember
from snavio.spark import cli as jobs

ENDPOINT = "http://127.0.0.1:4566"


@pytest.fixture
def data_dir(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("AWS_", "SNAVIO_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SNAVIO_CLI_DATA_DIR", str(tmp_path))
    return tmp_path


def test_a_platform_that_is_up_is_where_the_jobs_look_whoever_one_is_elsewhere(data_dir, monkeypatch):
    remember(data_dir, Announcement(ENDPOINT, "http://127.0.0.1:8080", "token"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "personal")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "personal")
    found = embedded_aws()
    assert (found["AWS_ENDPOINT_URL"], found["AWS_REGION"]) == (ENDPOINT, "us-east-1")
    assert "personal" not in found.values()
    assert found["AWS_SESSION_TOKEN"] == ""


def test_where_none_is_up_or_another_is_named_the_environment_stays_as_it_is(data_dir, monkeypatch):
    assert embedded_aws() == {}
    remember(data_dir, Announcement(ENDPOINT, "http://127.0.0.1:8080", "token"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert embedded_aws() == {}


def test_the_jobs_start_with_the_platform_in_their_environment(data_dir, monkeypatch, tmp_path):
    remember(data_dir, Announcement(ENDPOINT, "http://127.0.0.1:8080", "token"))
    seen = []

    class Stopped(Exception):  # noqa: N818
        pass

    def looked(*_):
        seen.append(os.environ["AWS_ENDPOINT_URL"])
        raise Stopped

    # Whatever the command leaves in the environment goes with the test.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(jobs, "query_shard", looked)
    with pytest.raises(Stopped):
        group.main(["audit", "--lake", str(tmp_path / "lake")], standalone_mode=False)
    assert seen == [ENDPOINT]
