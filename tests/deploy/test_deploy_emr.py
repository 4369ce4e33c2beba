"""What EMR Serverless is told to run is what the command line takes."""

import json
from pathlib import Path

import pytest

from snavio.spark.cli import spark

EMR = Path(__file__).parents[2] / "deploy" / "emr"


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
