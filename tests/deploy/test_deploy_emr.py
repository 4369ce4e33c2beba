"""What EMR Serverless is told to run is what the command line takes."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from snavio.aws.errors import Refused
from snavio.spark import cli
from snavio.spark.cli import check_lake, spark

ROOT = Path(__file__).parents[2]
EMR = ROOT / "deploy" / "emr"


@pytest.mark.parametrize("job", ["audit", "report"])
def test_the_arguments_of_a_job_are_ones_it_takes_and_name_the_buckets_lake(job):
    driver = json.loads((EMR / f"{job}.json").read_text())["sparkSubmit"]
    name, *arguments = driver["entryPointArguments"]
    context = spark.commands[name].make_context(name, arguments)
    assert (name, context.params["lake"], context.params["as_json"]) == (job, "s3://${BUCKET}/lake", True)
    assert context.params.get("period") == (60.0 if job == "audit" else None)


def exit_code_of_job(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["job.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EMR / "job.py"))
    return ended.value.code


def test_a_job_that_failed_ends_with_a_code_that_says_so(monkeypatch, tmp_path):
    def throttled(*_):
        raise Refused("throttled")

    monkeypatch.setattr(cli, "query_shard", throttled)
    assert exit_code_of_job(monkeypatch, "audit", "--lake", str(tmp_path)) == 1
    assert exit_code_of_job(monkeypatch, "audit", "--lake", str(tmp_path), "--every", "0") == 2
    assert exit_code_of_job(monkeypatch, "--help") == 0


@pytest.mark.parametrize("job", ["audit", "report"])
def test_driver_and_executors_run_the_python_that_was_packed(job):
    settings = json.loads((EMR / f"{job}.json").read_text())["sparkSubmit"]["sparkSubmitParameters"]
    packed = "environment.tar.gz#environment"
    assert packed in settings
    assert packed.partition("#")[0] in (EMR / "package.sh").read_text()
    pythons = [word.rpartition("=")[2] for word in settings.split() if "PYSPARK" in word]
    assert pythons == ["./environment/bin/python3.11"] * 3


@pytest.mark.parametrize("job", ["audit", "report"])
def test_a_lake_on_s3_is_refused_in_one_sentence_where_spark_cannot_write_to_it(job, monkeypatch):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    for master in ([], ["--master", "local[2]"]):
        with pytest.raises(click.BadParameter, match="for EMR Serverless, where Spark can write to S3"):
            spark.main([job, "--lake", "s3://b/lake", *master], standalone_mode=False)
    check_lake("lake", None)


@pytest.mark.parametrize("job", ["audit", "report"])
@pytest.mark.parametrize("lake", ["gs://b/lake", "hdfs://b/lake", "some/[odd]/lake", "s3://b/la?ke"])
def test_a_lake_where_there_can_be_none_is_wrong_usage_and_starts_nothing(job, lake, monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(cli, "open_session", lambda *_, **__: pytest.fail("started"))
    with pytest.raises(click.BadParameter, match=r"The lake is a folder or an s3|for a pattern"):
        spark.main([job, "--lake", lake], standalone_mode=False)


def test_a_lake_on_s3_is_taken_where_spark_submit_chose_the_master(monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    check_lake("s3://b/lake", None)
    check_lake("s3://b/lake", "yarn")


def test_every_member_the_jobs_need_is_packed():
    def needed(member):
        named = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]["dependencies"]
        below = {f"libs/{name.removeprefix('snavio-')}" for name in named if name.startswith("snavio-")}
        return {member}.union(*map(needed, below))

    packed = re.findall(r"(?<= \./)[a-z/]+", (EMR / "package.sh").read_text())
    assert set(packed) == needed("spark")


def test_a_uv_on_the_path_is_taken_by_its_name_and_none_is_fetched(tmp_path):
    (tmp_path / "deploy/emr").mkdir(parents=True)
    shutil.copy(EMR / "package.sh", tmp_path / "deploy/emr")
    for name, said in {
        "bin/uv": 'echo "uv $1" >&2; exit 1',
        "tools/fetch-uv": "echo fetched >&2; exit 1",
    }.items():
        script = tmp_path / name
        script.parent.mkdir()
        script.write_text(f"#!/bin/sh\n{said}\n")
        script.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [tmp_path / "deploy/emr/package.sh"],
        env={"PATH": path, "UV": "uv"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[0] == "uv python"
