"""`snavio demo`: shows progress while it runs, then a table of what happened; 0 only if every figure is right."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import anyio
import click
import msgspec
from rich.console import Console
from rich.table import Table

from snavio.demo.checks import Checks
from snavio.demo.platform import DemoFailedError, running_platform
from snavio.demo.scenarios import Demonstration, latency_line


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output, for machines.")
@click.option(
    "--keep-log", type=click.Path(dir_okay=False, path_type=Path), help="Where to keep the platform's log."
)
def demo(as_json: bool, keep_log: Path | None) -> None:  # noqa: FBT001 - click passes options by name
    r"""Run the whole platform and drive it as tenants would.

    Starts the embedded AWS and every service, registers three tenants over HTTP, sends signed commands through the bus,
    kills workers in the middle of them, and checks what arrived and what the tenants were told.

    \b
    Examples:
      snavio demo
      snavio demo --json | jq .checks
    """
    console = Console(stderr=True)
    started = time.monotonic()
    try:
        demonstration = anyio.run(_run, console, keep_log, started)
    except DemoFailedError as problem:
        raise click.ClickException(str(problem)) from problem
    seconds = time.monotonic() - started
    checks = demonstration.checks
    if as_json:
        document = {"ok": checks.hold, "seconds": round(seconds, 1), "checks": checks.made}
        click.echo(msgspec.json.encode(document))
    else:
        _print(checks, demonstration.latencies, seconds)
    if not checks.hold:
        raise SystemExit(1)


async def _run(console: Console, keep_log: Path | None, started: float) -> Demonstration:
    with tempfile.TemporaryDirectory(prefix="snavio-demo-") as folder, console.status("starting") as status:

        def say(step: str) -> None:
            console.print(f"[dim]{time.monotonic() - started:5.1f} s[/]  {step}")
            status.update(step)

        say("starting the embedded AWS and every service")
        log = Path(folder) / "platform.log"
        try:
            async with running_platform(Path(folder)) as running:
                demonstration = Demonstration(running, say)
                await demonstration.run()
                say("stopping")
        finally:
            if keep_log is not None:
                await anyio.Path(keep_log).write_bytes(await anyio.Path(log).read_bytes())
    return demonstration


def _print(checks: Checks, latencies: dict[str, list[float]], seconds: float) -> None:
    table = Table(title="What happened", title_justify="left")
    table.add_column("claim")
    table.add_column("expected", overflow="fold")
    table.add_column("seen", overflow="fold")
    table.add_column("", justify="center")
    for check in checks.made:
        table.add_row(
            check.claim, check.expected, check.seen, "[green]✓[/]" if check.holds else "[bold red]✗[/]"
        )
    console = Console()
    console.print(table)
    console.print(latency_line(latencies))
    held = sum(check.holds for check in checks.made)
    console.print(f"{held} of {len(checks.made)} claims hold, after {seconds:.0f} s.")
