"""`snavio cost`."""

from __future__ import annotations

import math
from pathlib import Path as File
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from snavio.aws.errors import SnavioError
from snavio.cli.cost.bill import GOAL, HIGHEST_RATE, Bill, bill_for, rate_that_meets
from snavio.cli.cost.prices import DEFAULT_REGION, load_prices
from snavio.cli.cost.workload import MAX_BATCH, TYPICAL, Mix, Workload, parse_mix
from snavio.cli.output import as_json, write_json

_SHOWN_USD = 0.005
TYPICAL_TEXT = ",".join(f"{path}={share:g}" for path, share in TYPICAL.items())


class MixType(click.ParamType[Mix]):
    """`fast=0.9,strict=0.1`."""

    name = "mix"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Mix:
        """The part of the commands that takes each path."""
        if isinstance(value, dict):
            return value  # pyright: ignore[reportUnknownVariableType]
        try:
            return parse_mix(str(value))
        except SnavioError as error:
            self.fail(str(error), param, ctx)


class NumberType(click.FloatRange):
    """A number within bounds, and really a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


@click.command(short_help="Estimate what the platform costs on AWS.")
@click.option(
    "--rate",
    type=NumberType(0, HIGHEST_RATE, min_open=True),
    required=True,
    help="Commands a second, on average.",
)
@click.option(
    "--mix",
    type=MixType(),
    default=TYPICAL_TEXT,
    show_default=True,
    help="Which part of the commands takes which path: invalid, fast, limited, slow, strict, claim-check, rejected.",
)
@click.option(
    "--payload", type=click.IntRange(1, 1_000_000), default=1024, show_default=True, help="Bytes of payload."
)
@click.option(
    "--claim-payload",
    type=click.IntRange(1, 1_000_000),
    default=300_000,
    show_default=True,
    help="Bytes of payload of what goes by claim check.",
)
@click.option(
    "--batch",
    type=NumberType(1, MAX_BATCH),
    help="Messages in a batch, on average. From the rate unless given.",
)
@click.option(
    "--targets",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Target queues in use at a time: a batch needs one send for each.",
)
@click.option("--tenants", type=click.IntRange(1), default=10, show_default=True, help="Tenants that send.")
@click.option("--routes", type=click.IntRange(0), default=50, show_default=True, help="Routes registered.")
@click.option(
    "--telemetry/--no-telemetry",
    default=True,
    show_default=True,
    help="Without, to see its share; the platform always writes it.",
)
@click.option("--audit/--no-audit", default=True, show_default=True, help="The Spark audit, always on.")
@click.option("--region", default=DEFAULT_REGION, show_default=True, help="Whose prices.")
@click.option(
    "--prices",
    type=click.Path(exists=True, dir_okay=False, path_type=File),
    help="A file of prices of your own, in the form of the one shipped.",
)
@as_json
def cost(
    *,
    rate: float,
    mix: Mix,
    payload: int,
    claim_payload: int,
    batch: float | None,
    targets: int,
    tenants: int,
    routes: int,
    telemetry: bool,
    audit: bool,
    region: str,
    prices: File | None,
    json: bool,
) -> None:
    """Estimate what the platform costs on AWS, by path and component, from published prices.

    The calls are those the workers make for each command; free tiers and data transfer are left out.

    \b
    Examples:
      snavio cost --rate 100
      snavio cost --rate 2000 --mix fast=0.8,strict=0.2 --tenants 50 --routes 400
      snavio cost --rate 10 --no-audit --json
    """  # noqa: D301 - \b tells click to keep the lines that follow
    load = Workload(
        rate=rate,
        mix=mix,
        payload_bytes=payload,
        claim_bytes=claim_payload,
        batch=batch,
        targets=targets,
        tenants=tenants,
        routes=routes,
        telemetry=telemetry,
        audit=audit,
    )
    priced = load_prices(region, prices)
    bill = bill_for(load, priced)
    enough = rate_that_meets(GOAL, load, priced)
    if json:
        write_json({"bill": bill, "goal_usd_per_million": GOAL, "goal_met_from_rate": enough})
        return
    _show(bill, enough)


def _show(bill: Bill, enough: float | None) -> None:
    console = Console()
    load = bill.workload
    console.print(
        f"{load.rate:g} commands a second, {load.payload_bytes} bytes each, "
        f"{bill.region}, prices of {bill.prices_recorded}; USD a million commands.\n"
    )
    paths = Table("path", "part", "snavio", "lambda", "plain rule", box=None, header_style="bold")
    for column in paths.columns[1:]:
        column.justify = "right"
    for path, one in bill.paths.items():
        share = f"{one.share:.1%}" if one.share else "-"
        paths.add_row(path, share, f"{one.total:.2f}", f"{one.lambda_dispatch:.2f}", f"{one.plain:.2f}")
    paths.add_row("standing", "", f"{bill.standing_per_million:.2f}", "", "")
    paths.add_row(
        "all",
        "100.0%",
        f"{bill.per_million:.2f}",
        f"{bill.lambda_per_million:.2f}",
        f"{bill.plain_per_million:.2f}",
        style="bold",
    )
    console.print(paths)
    parts = Table("component", "a million", "a month", "part", box=None, header_style="bold")
    for column in parts.columns[1:]:
        column.justify = "right"
    monthly = bill.monthly / bill.per_million
    for component, usd in bill.by_component.items():
        if usd >= _SHOWN_USD or usd * monthly >= 1:
            parts.add_row(component, f"{usd:.2f}", f"{usd * monthly:,.2f}", f"{usd / bill.per_million:.0%}")
    parts.add_row("all", f"{bill.per_million:.2f}", f"{bill.monthly:,.2f}", "100%", style="bold")
    console.print()
    console.print(parts)
    console.print(f"\n{verdict(bill, enough)}")


def verdict(bill: Bill, enough: float | None) -> str:
    """Whether a million commands cost less than they should, and from which rate on they do."""
    met = "meets" if bill.per_million <= GOAL else "misses"
    said = f"This {met} the goal of {GOAL:g} USD a million commands"
    if enough is None:
        return f"{said}, which no rate meets with this mix."
    return f"{said}, which this mix meets from {enough:.3g} commands a second on."
