"""`snavio up`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from snavio.embedded.up import STAGES, Options
from snavio.embedded.up import up as run


@click.command(short_help="Run the whole platform on this machine.")
@click.option(
    "--port-aws",
    type=click.IntRange(0, 65535),
    default=4566,
    show_default=True,
    help="Port of the embedded AWS; 0 takes any free one.",
)
@click.option(
    "--port-http",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the gateway; 0 takes any free one.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path(".snavio"),
    show_default=True,
    help="Where state is kept between runs.",
)
@click.option(
    "--services",
    metavar="NAMES",
    help=f"Which services to run, separated by commas; all that are installed otherwise. There are {', '.join(STAGES)}.",
)
def up(*, port_aws: int, port_http: int, data_dir: Path, services: str | None) -> None:
    r"""Run the whole platform on this machine, without Docker, until Ctrl-C.

    Starts an embedded AWS, creates every resource and runs each service as its own process. When all is ready, prints
    one JSON line on standard output with aws_endpoint_url, http_url and admin_token. Logs go to standard error.

    \b
    Examples:
      snavio up
      snavio up --services shield,fast,slow
      snavio up --port-aws 0 --port-http 0 --data-dir /var/lib/snavio
    """
    chosen = (
        tuple(name.strip() for name in services.split(",") if name.strip()) if services is not None else None
    )
    asyncio.run(run(Options(data_dir=data_dir, port_aws=port_aws, port_http=port_http, services=chosen)))
