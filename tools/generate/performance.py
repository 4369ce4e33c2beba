"""The page of measured figures, from the run that is kept beside the bench."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parents[2] / "bench"
LAST_RUN = BENCH / "last-run.json"
LAST_SPARK_RUN = BENCH / "last-spark-run.json"
WORK = {
    "bare": "read the rows and one groupBy into the lake's sums, kept nowhere",
    "rollup": "the rollup: the same sums, as the lake keeps them",
    "audit": "a whole audit: what changed, rollup, feed, dominance, bans",
    "coarse": "a smaller question: one sum a source, target and command",
}
MOST_RATIO, MOST_GROWTH = 1.5, 1.25
TIMES = "×"  # noqa: RUF001 - the sign of a ratio
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
        f"Run of {machine['at']}, of the code at {machine['code']}: {machine['cores']} cores ({machine['processor']}), {machine['system']}, Python {machine['python']};",
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
    return "\n".join([*lines, *_spark(), ""])


def _spark() -> list[str]:
    run = json.loads(LAST_SPARK_RUN.read_text(encoding="utf-8"))
    sizes, source = run["sizes"], run["source"]
    first, last = sizes[0], sizes[-1]
    headings = [f"{size['rows']:,} rows" for size in sizes]
    return [
        "",
        "## Spark, processor seconds",
        "",
        "What `make bench-spark` measured, taking turns. Which `groupBy` is the measure is told in",
        "[ADR 0016](adr/0016-a-rollup-is-measured-against-its-own-sums.md).",
        "",
        f"| what | {' | '.join(headings)} | ratio | target | | a row, in the larger feed | target | |",
        f"|---|{'--:|' * len(sizes)}--:|---|---|--:|---|---|",
        *(_spark_row(run, name) for name in WORK),
        "",
        f"The larger feed has {last['rows'] / first['rows']:.0f} times the rows of the smaller. Spark's process held {last['peak_mb']:,} MB at most.",
        f"Through the data source, {source['rows']:,} rows came from the embedded AWS by {source['queries']:,} queries,",
        f"{source['rows'] / source['seconds']:,.0f} a second.",
    ]


def _spark_row(run: dict[str, Any], name: str) -> str:
    ratio, grown = run["sizes"][-1]["ratios"][name]["processor"], run["growth"][name]
    seconds = [f"{size['medians'][name]['processor']:.1f} s" for size in run["sizes"]]
    promised = name == "rollup"
    held = name in {"rollup", "audit"}
    cells = [
        WORK[name],
        *seconds,
        f"{ratio:.2f} {TIMES}",
        f"≤ {MOST_RATIO} {TIMES}" if promised else "",
        VERDICTS[ratio <= MOST_RATIO] if promised else "",
        f"{grown:.2f} {TIMES}",
        f"≤ {MOST_GROWTH} {TIMES}" if held else "",
        VERDICTS[grown <= MOST_GROWTH] if held else "",
    ]
    return f"| {' | '.join(cells)} |"


def _figure(row: dict[str, Any]) -> str:
    return f"{row['value']:,} {row['unit']}"


def _ratio(row: dict[str, Any]) -> str:
    return "" if row.get("ratio") is None else f"{row['ratio']:.2f} {TIMES} {row['beside']}"


def _load(averages: list[float]) -> str:
    return f"{averages[0]:.1f}"
