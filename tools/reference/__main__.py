"""Write the pages of docs/reference from the code; with `--check`, only say which are out of step."""

from __future__ import annotations

import sys
from pathlib import Path

from environment import environment_page
from events import events_page
from metrics import metrics_page
from names import names_page

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {
    "environment.md": environment_page,
    "metrics.md": metrics_page,
    "names.md": names_page,
    "telemetry-events.md": events_page,
}
NOTICE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->\n\n"


def main(arguments: list[str]) -> int:
    """Write or check every page."""
    stale = [name for name, page in PAGES.items() if _differs(FOLDER / name, NOTICE + page())]
    unknown = [path.name for path in FOLDER.glob("*.md") if path.name not in {*PAGES, "README.md"}]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/reference/{name} is out of step with the code: run `make docs`.", file=sys.stderr)
        for name in unknown:
            print(f"docs/reference/{name} is written by nothing: remove it.", file=sys.stderr)
        return 1 if stale or unknown else 0
    for name in stale:
        (FOLDER / name).write_text(NOTICE + PAGES[name](), encoding="utf-8")
        print(f"docs/reference/{name} written")
    return 0


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
