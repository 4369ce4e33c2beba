"""What a run comes to: the machine, the table, the file."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
from figures import Row
from rich.console import Console
from rich.table import Table

PACKAGES = (
    "aiobotocore",
    "aws-lambda-powertools",
    "ministack",
    "msgspec",
    "numpy",
    "pydantic",
    "uvloop",
)
VERDICT = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}


class Machine(msgspec.Struct, frozen=True):
    """What the figures were measured on. They are to be read as ratios: another machine has others."""

    at: str
    code: str
    """The commit, where there is one to tell."""
    cores: int
    processor: str
    system: str
    python: str
    packages: dict[str, str]
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]
    seconds: float


class Run(msgspec.Struct, frozen=True):
    """One run of the whole bench."""

    machine: Machine
    rows: list[Row]


def machine(load_before: tuple[float, float, float], seconds: float) -> Machine:
    """This one, now."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return Machine(
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        code=_commit(),
        cores=os.cpu_count() or 1,
        processor=models[0] if models else platform.machine(),
        system=platform.system(),
        python=platform.python_version(),
        packages={name: version(name) for name in PACKAGES},
        load_before=load_before,
        load_after=os.getloadavg(),
        seconds=round(seconds, 1),
    )


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.check_output(git, cwd=Path(__file__).parent, text=True).strip()  # noqa: S603 - as it stands
    except (OSError, subprocess.CalledProcessError):
        return "no commit"


def show(rows: list[Row]) -> None:
    """The table, on the terminal."""
    table = Table(title="Snavio, measured", title_justify="left")
    for heading in ("what", "measured", "×", "of", "target", "", "note"):
        table.add_column(heading, justify="right" if heading in {"measured", "×"} else "left")
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            table.add_section()
            table.add_row(f"[bold]{section}[/bold]")
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        measured = f"{row.value:,} {row.unit}"
        table.add_row(row.what, measured, ratio, row.beside, row.target, VERDICT[row.met], row.note)
    console = Console()
    # Beyond a terminal, in a file or a log, a line may be as long as it needs.
    Console(width=console.width if console.is_terminal else 220).print(table)


def write(run: Run, path: Path) -> None:
    """The file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
