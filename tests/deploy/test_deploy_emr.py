"""What EMR Serverless is told to run is what the command line takes."""

import json
import re
import tomllib
from pathlib import Path

import click
import pytest

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
