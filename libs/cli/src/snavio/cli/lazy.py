"""A click group whose commands are imported when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from snavio.cli.commands import Entry


class LazyGroup(click.Group):
    """Lists its commands from a table; imports one when it is run or asked for help."""

    def __init__(self, name: str, entries: Mapping[str, Entry], *, help: str) -> None:  # noqa: A002 - click's own word
        super().__init__(name, help=help, context_settings={"help_option_names": ["-h", "--help"]})
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        del ctx
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        del ctx
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.where.partition(":")
        return _keeping_lines(getattr(importlib.import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing anything."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self._entries.items()])


def _keeping_lines(command: click.Command) -> click.Command:
    # A line of `\b` tells click not to wrap what follows. In a raw docstring, which the linter asks for, it is two
    # characters and not the one click looks for.
    if command.help:
        command.help = command.help.replace("\\b\n", "\b\n")
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _keeping_lines(each)
    return command
