"""`snavio spark`: the Spark jobs, on the platform that runs here or the one the AWS variables name."""

from __future__ import annotations

import os

import click

from snavio.cli.connection import NotConnectedError, connect
from snavio.embedded.root import root_environment
from snavio.spark.cli import spark as jobs


@click.group(commands=jobs.commands, help=jobs.help)
def spark() -> None:
    """Lead the jobs to an embedded platform: Spark's own processes find AWS by the environment alone."""
    os.environ.update(embedded_aws())


def embedded_aws() -> dict[str, str]:
    """Where the embedded platform of this directory has its AWS; nothing where none runs or another is named."""
    try:
        connection = connect()
    except NotConnectedError:
        return {}
    if connection.aws_endpoint_url is None or connection.region is None:
        return {}
    return root_environment(connection.aws_endpoint_url, connection.region)
