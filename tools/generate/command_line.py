"""The page of the command line: what `--help` says, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from docstrings import NOTICE

from snavio.cli.main import root

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 110


def command_line_page() -> str:
    """Every command with its options."""
    lines = [NOTICE, "", "# Command line", "", "What `--help` says of each command.", ""]
    for name, text in _helps(root, click.Context(root, info_name="snavio")):
        lines += [f"## `{name}`", "", "```", text, "```", ""]
    return "\n".join(lines)


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    formatter = click.HelpFormatter(width=_WIDTH)
    command.format_help(context, formatter)
    yield context.command_path, formatter.getvalue().rstrip()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _helps(below, click.Context(below, info_name=name, parent=context))
