"""What commands share in speaking: `--json` for machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])


def as_json(command: F) -> F:
    """Give a command the option `--json`, as its parameter `json`."""
    return click.option("--json", is_flag=True, help="One JSON document on standard output, for machines.")(
        command
    )


def write_json(value: object) -> None:
    """One JSON document, on one line."""
    click.echo(msgspec.json.encode(value))
