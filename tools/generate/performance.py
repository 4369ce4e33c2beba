"""The page of measured figures, from the run that is kept beside the bench."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

LAST_RUN = Path(__file__).parents[2] / "bench" / "last-run.json"
VERDICTS = {True: "met", False: "**missed**", None: ""}


def performance_page() -> str:
    """Every row of the last run, and what it ran on."""
    run = json.loads(LAST_RUN.read_text(encoding="utf-8"))
    machine, rows = run["machine"], run["rows"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    missed = [row for row in rows if row.get("met") is False]
    judged = [row for row in rows if row.get("met") is not None]
    lines = [
        "<!-- Written by `make bench-docs` from bench/last-run.json: do not edit. -->",
        "",
        "# Performance",
        "",
        "What `make bench` measured: each promise beside its floor and beside what one would use instead, taking turns in one run,",
        "as medians. Read the ratios; absolute figures are those of this machine in this hour.",
        "",
        f"Run of {machine['at']}: {machine['cores']} cores ({machine['processor']}), {machine['system']}, Python {machine['python']};",
        f"{packages}. The load average was {_load(machine['load_before'])} before and {_load(machine['load_after'])} after; the run took {machine['seconds']:.0f} s.",
        "",
        f"Of {len(judged)} targets {len(judged) - len(missed)} are met"
        + (":" if not missed else "; missed are:"),
        "",
        *(
            [
                f"- {row['what']}: {_figure(row)}, {_ratio(row)}, where {row['target']} is wanted"
                for row in missed
            ]
            if missed
            else ["- all of them"]
        ),
    ]
    for section, found in groupby(rows, key=lambda row: row["section"]):
        lines += [
            "",
            f"## {section}",
            "",
            "| what | measured | ratio | target | | note |",
            "|---|--:|---|---|---|---|",
            *(
                f"| {row['what']} | {_figure(row)} | {_ratio(row)} | {row.get('target', '')} "
                f"| {VERDICTS[row.get('met')]} | {row.get('note', '')} |"
                for row in found
            ),
        ]
    return "\n".join([*lines, ""])


def _figure(row: dict[str, Any]) -> str:
    return f"{row['value']:,} {row['unit']}"


def _ratio(row: dict[str, Any]) -> str:
    return "" if row.get("ratio") is None else f"{row['ratio']:.2f} × {row['beside']}"  # noqa: RUF001 - the sign of a ratio


def _load(averages: list[float]) -> str:
    return f"{averages[0]:.1f}"
