"""Write what follows from the code: reference pages and dashboards; with `--check`, only say what is out of step."""

from __future__ import annotations

import sys
from pathlib import Path

from command_line import command_line_page
from cost import cost_page
from dashboards import commands_dashboard
from environment import environment_page
from events import events_page
from flowcharts import flowcharts_page
from metrics import metrics_page
from names import names_page
from performance import performance_page
from vectors import vectors_json, vectors_page

from snavio.telemetry.reference import reference_files

ROOT = Path(__file__).parents[2]
PAGES = {
    "docs/cost.md": cost_page,
    "docs/flowcharts.md": flowcharts_page,
    "docs/performance.md": performance_page,
    "docs/reference/command-line.md": command_line_page,
    "docs/reference/environment.md": environment_page,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/names.md": names_page,
    "docs/reference/signature-vectors.json": vectors_json,
    "docs/reference/signature-vectors.md": vectors_page,
    "docs/reference/telemetry-events.md": events_page,
    "deploy/grafana/dashboards/commands.json": commands_dashboard,
}


def main(arguments: list[str]) -> int:
    """Write or check every file."""
    texts = {name: page() for name, page in PAGES.items()}
    texts |= {f"docs/reference/{name}": text for name, text in reference_files().items()}
    stale = [name for name, text in texts.items() if _differs(ROOT / name, text)]
    for name in stale:
        if "--check" in arguments:
            print(f"{name} is out of step with the code: run `make docs`.", file=sys.stderr)
        else:
            (ROOT / name).write_text(texts[name], encoding="utf-8")
            print(f"{name} written")
    return 1 if stale and "--check" in arguments else 0


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
