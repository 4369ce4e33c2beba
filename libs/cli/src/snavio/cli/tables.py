"""Documents as tables for people, or as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from snavio.cli.output import write_json

Column = str | tuple[str, Callable[[Mapping[str, Any]], object]]


def show(documents: Sequence[Mapping[str, Any]], *columns: Column, json: bool, empty: str) -> None:
    """One row a document. A column is a field, or a title with what to show under it."""
    if json:
        write_json(documents)
        return
    console = Console()
    if not documents:
        console.print(empty)
        return
    titles = [column if isinstance(column, str) else column[0] for column in columns]
    table = Table(*(title.replace("_", " ") for title in titles), box=None, header_style="bold")
    for document in documents:
        table.add_row(*(_cell(document, column) for column in columns))
    console.print(table)


def show_one(document: Mapping[str, Any], *, json: bool, leave_out: Sequence[str] = ()) -> None:
    """One line a field, of those that have a value."""
    if json:
        write_json(document)
        return
    table = Table(box=None, show_header=False)
    table.add_column()
    # Folded, never cut: these are values people copy.
    table.add_column(overflow="fold")
    for field, value in document.items():
        if field not in leave_out and value not in (None, [], {}):
            table.add_row(Text(field.replace("_", " "), style="bold"), _text(value))
    Console().print(table)


def say(sentence: str, document: object = None, *, json: bool) -> None:
    """A sentence for people; for programs the document, if there is one."""
    if not json:
        Console().print(Text(sentence))
    elif document is not None:
        write_json(document)


def _cell(document: Mapping[str, Any], column: Column) -> Text:
    value = document.get(column) if isinstance(column, str) else column[1](document)
    return _text(value)


def _text(value: object) -> Text:
    # As Text, because what tenants write may look like the console's markup.
    if value is None:
        return Text("")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, list | tuple):
        return Text("\n".join(str(each) for each in value))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return Text(str(value))
