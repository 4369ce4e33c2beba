"""The page of what the platform costs."""

from __future__ import annotations

import msgspec
from docstrings import NOTICE, attribute_docs, one_line

from snavio.cli.cost import alternatives, calls, fleet, standing, workload
from snavio.cli.cost.bill import GOAL, Bill, bill_for, rate_that_meets
from snavio.cli.cost.prices import Prices, load_prices
from snavio.cli.cost.workload import TYPICAL, Path, Workload

_RATES = (1, 10, 100, 1000, 10_000)
_SHOWN = 0.01


def cost_page() -> str:
    """Tables for a few rates, what they rest on, and what they leave out."""
    prices = load_prices()
    load = Workload(rate=1.0, mix=TYPICAL)
    bills = {rate: bill_for(msgspec.structs.replace(load, rate=float(rate)), prices) for rate in _RATES}
    mix = ", ".join(f"{share:.0%} {path}" for path, share in TYPICAL.items())
    return "\n".join(
        [
            NOTICE,
            "",
            "# What it costs",
            "",
            f"USD a million commands in {prices.region}, at the prices recorded in {prices.recorded}: {mix}; {load.payload_bytes} bytes of",
            f"payload, {load.tenants} tenants, {load.targets} target queues in use, {load.routes} routes. `snavio cost --rate … --mix …` reckons any other load;",
            "see [its options](reference/command-line.md#snavio-cost).",
            "",
            *_totals(bills),
            "",
            *_verdict(load, prices),
            "",
            *_functions(bills),
            "",
            "## By path",
            "",
            "What one more million commands cost, the standing cost apart.",
            "",
            *_paths(bills),
            "",
            "## By component",
            "",
            "The mix above, with what the platform costs while time passes shared out over the commands.",
            "",
            *_components(bills),
            "",
            "## What dominates",
            "",
            *_dominant(bills),
            "",
            "## How it is reckoned",
            "",
            "The calls of each path are those of the code: a test runs commands of every path through the real workers and compares. The",
            "periods of what runs all the time are the defaults of the [settings](reference/environment.md), which a test compares too.",
            "",
            *_assumptions(),
            "",
            "## What is left out",
            "",
            "- Free tiers, tiers of volume beyond the first, savings plans, support and tax.",
            "- Data transfer, NAT gateways, VPC endpoints and the gateway's load balancer. Workers in public subnets, or gateway endpoints",
            "  for S3 and DynamoDB, keep this small; interface endpoints are paid for by the hour and gigabyte.",
            "- What targets pay to read their own queues, and producers to sign. Reading telemetry is in: its queues are the platform's.",
            "- Tries that fail and are made again, dead letters, replays, alerts, the hourly report, traces, and what is kept in DynamoDB.",
            "",
            "## Prices",
            "",
            "From [one file](../libs/cli/src/snavio/cli/cost/prices.json). Written down by hand, some from second-hand sources: check them before relying on them; `--prices` takes a file of your own,",
            "for another region or a negotiated price.",
            "",
            "| USD | for | unit | check against |",
            "|---|---|---|---|",
            *(
                f"| {_plain(price.usd)} | {price.per:,.0f} | {price.unit} | {price.source} |"
                for price in prices.of_meter.values()
            ),
            "",
        ]
    )


def _totals(bills: dict[int, Bill]) -> list[str]:
    return [
        "| commands a second | Snavio | a month | of it standing | in Lambda functions | plain EventBridge → SQS |",
        "|---|---|---|---|---|---|",
        *(
            f"| {rate:,} | **{bill.per_million:.2f}** | {bill.monthly:,.0f} | {bill.standing_per_million:.2f} | "
            f"{bill.lambda_per_million:.2f} | {bill.plain_per_million:.2f} |"
            for rate, bill in bills.items()
        ),
    ]


def _verdict(load: Workload, prices: Prices) -> list[str]:
    with_audit = rate_that_meets(GOAL, load, prices)
    without = rate_that_meets(GOAL, msgspec.structs.replace(load, audit=False), prices)
    return [
        f"The goal is less than {GOAL:g} USD a million. It holds from **{with_audit:.0f} commands a second** on, and without the Spark audit, which",
        f"runs all the time, from {without:.0f}. Below that, the platform costs what its workers cost, however few commands there are.",
    ]


def _functions(bills: dict[int, Bill]) -> list[str]:
    cheaper = [f"{rate:,}" for rate, bill in bills.items() if bill.lambda_per_million < bill.per_million]
    return [
        f"Functions are cheaper at {', '.join(cheaper)} commands a second: they cost nothing while nothing happens, and need no second and",
        "third queue. But they read the registry for every command and wait for it, and a limit that many of them share is counted by a",
        "write for each command. The plain rule proves nothing, limits nothing and tells nobody.",
    ]


def _plain(number: float) -> str:
    return f"{number:.10f}".rstrip("0").rstrip(".")


def _paths(bills: dict[int, Bill]) -> list[str]:
    docs = attribute_docs(Path)
    lines = [
        "| path | what becomes of it | "
        + " | ".join(f"{rate:,}/s" for rate in bills)
        + " | in Lambda, 100/s |",
        "|---|---|" + "---|" * (len(bills) + 1),
    ]
    for path in Path:
        costs = " | ".join(f"{bill.paths[path].total:.2f}" for bill in bills.values())
        other = bills[100].paths[path].lambda_dispatch
        lines.append(f"| {path} | {one_line(docs[path.name])} | {costs} | {other:.2f} |")
    return lines


def _components(bills: dict[int, Bill]) -> list[str]:
    names = [
        name
        for name in bills[_RATES[0]].by_component
        if any(bill.by_component[name] >= _SHOWN for bill in bills.values())
    ]
    names.sort(key=lambda name: -bills[100].by_component[name])
    return [
        "| component | " + " | ".join(f"{rate:,}/s" for rate in bills) + " |",
        "|---|" + "---|" * len(bills),
        *(
            f"| {name} | " + " | ".join(f"{bill.by_component[name]:.2f}" for bill in bills.values()) + " |"
            for name in names
        ),
    ]


def _dominant(bills: dict[int, Bill]) -> list[str]:
    lines: list[str] = []
    for rate, bill in bills.items():
        first = list(bill.by_component.items())[:3]
        parts = ", ".join(f"{name} ({usd / bill.per_million:.0%})" for name, usd in first)
        lines.append(f"- At {rate:,} a second: {parts}.")
    return lines


def _assumptions() -> list[str]:
    return [
        f"- A call to SQS takes {workload.ROUND_TRIP_SECONDS * 1000:.0f} ms; a batch holds what arrives while its polls are busy, 1 to {workload.MAX_BATCH} messages.",
        f"- A command weighs {calls.ENVELOPE_BYTES} bytes beside its payload; an event with its attributes {calls.EVENT_BYTES}, one write unit to put and one to remove.",
        "- What EventBridge and SNS put into a queue is a request to SQS like any other. Queues whose messages have a group are fair queues.",
        f"- {fleet.FEWEST} workers of each of six services at least, of {fleet.LEAST_VCPU} vCPU and {fleet.LEAST_VCPU * fleet.GB_A_VCPU} GB; more when {fleet.BUSY:.0%} of their time is not enough for "
        + ", ".join(
            f"{seconds * 1e6:.0f} µs a message in {name}" for name, seconds in fleet.CPU_SECONDS.items()
        )
        + ".",
        f"- {standing.HOLDING:.0%} of the target queues hold something when the monitor looks.",
        f"- The audit: {standing.AUDIT_VCPU} vCPU and {standing.AUDIT_GB} GB of EMR Serverless, always on, as in [deploy/emr](../deploy/emr/README.md).",
        f"- A claim check is for {Workload(rate=1, mix={}).claim_bytes:,} bytes. Most of its cost is the archive, which takes every byte of every command.",
        f"- In Lambda: functions of {alternatives.MEMORY_GB} GB, batches as full as Snavio's, {alternatives.READS} strongly consistent reads a command, {alternatives.CALL_SECONDS * 1000:.0f} ms for each of three calls",
        f"  and {alternatives.COMMAND_SECONDS * 1000:.0f} ms for each command; the same telemetry, whose rows expire instead of being removed.",
    ]
