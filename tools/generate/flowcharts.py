"""The page of flowcharts."""

from __future__ import annotations

from docstrings import NOTICE
from flow_fast import fast_tree
from flow_shield import shield_trees
from flow_slow import slow_trees
from mermaid import Chart


def flowcharts_page() -> str:
    """What shield, fast and slow do with a command."""
    shield, slow = shield_trees(), slow_trees()
    return "\n".join(
        [
            NOTICE,
            "",
            "# Flowcharts",
            "",
            "What shield, fast and slow do with a command. The charts are drawn from the decision code: it is run with every answer to every",
            "question it asks, and what it asks, in which order, and what comes out is what stands here. See",
            "[the life of a command](ARCHITECTURE.md#the-life-of-a-command) for why.",
            "",
            "Green is delivered or passed on, red is refused and told, blue is left to slow, yellow is done again later, grey goes on in another",
            "chart. Names such as `snavio.command.failed` are [telemetry events](reference/telemetry-events.md).",
            "",
            "## Shield: is it genuine?",
            "",
            "The first check a message fails is the one its sender is told of.",
            "",
            "### Its form",
            "",
            Chart().draw("from the bus", shield["its form"]),
            "",
            "### Its proof",
            "",
            Chart().draw("well formed", shield["its proof"]),
            "",
            "## Fast: may it go, as far as I know?",
            "",
            "All of it from memory. *Banned* is by which kind of ban; *stale* means used, then refreshed.",
            "",
            Chart().draw("from shield", fast_tree()),
            "",
            "## Slow: may it go, in fact?",
            "",
            "Slow decides in stages, in the order of these charts: a test sends it a command with everything against it, and takes one",
            "objection away after another.",
            "",
            "### May it go",
            "",
            "The source is *off the warm path* below when fast left the command for a warm-path ban, or the registry has one.",
            "",
            Chart().draw("from fast", slow["may it go"]),
            "",
            "### Its id",
            "",
            "Only for strict routes.",
            "",
            Chart().draw("of a strict route", slow["its id"]),
            "",
            "### Its units",
            "",
            Chart().draw("eligible, and claimed if strict", slow["its units"]),
            "",
            "### Its delivery",
            "",
            Chart().draw("allowed", slow["its delivery"]),
            "",
        ]
    )
