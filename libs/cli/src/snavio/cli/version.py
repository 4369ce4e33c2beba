"""`snavio version`."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from snavio.cli.output import as_json, write_json


@click.command(short_help="Say which version this is.")
@as_json
def version(*, json: bool) -> None:
    r"""Say which version of Snavio and of Python this is.

    \b
    Examples:
      snavio version
      snavio version --json
    """
    versions = {"snavio": metadata.version("snavio-cli"), "python": platform.python_version()}
    if json:
        write_json(versions)
    else:
        click.echo(f"snavio {versions['snavio']}, Python {versions['python']}")
