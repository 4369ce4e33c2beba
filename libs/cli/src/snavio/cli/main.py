"""The `snavio` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from snavio.aws.errors import SnavioError
from snavio.cli.commands import COMMANDS
from snavio.cli.lazy import LazyGroup

FAILED = 1
INTERRUPTED = 130

root = LazyGroup(
    "snavio",
    COMMANDS,
    help="""Snavio, a command bus for many tenants on AWS.

    Endpoint, region and credentials come from the standard AWS variables and files, names from SNAVIO_PREFIX.

    \b
    Examples:
      snavio up                      the whole platform on this machine
      snavio provision --dry-run     what an AWS account still lacks
      snavio COMMAND --help          more about a command
    """,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. 0 for done, 1 with one sentence for what went wrong, 2 for wrong usage."""
    try:
        # Commands return nothing; a number is click's own exit code, of --help for one.
        code: object = root.main(arguments, prog_name="snavio", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except SnavioError as error:
        click.secho("Error: ", fg="red", nl=False, err=True)
        click.echo(str(error), err=True)
        return FAILED
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
