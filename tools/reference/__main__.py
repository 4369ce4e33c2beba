"""Write the pages of docs/reference from the code; with `--check`, only say which are out of step."""

from __future__ import annotations

import sys
from pathlib import Path

from events import events_page
from names import names_page
from vectors import vectors_json, vectors_page

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {
    "names.md": names_page,
    "signature-vectors.json": vectors_json,
    "signature-vectors.md": vectors_page,
    "telemetry-events.md": events_page,
}
NOTICE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->\n\n"


def main(arguments: list[str]) -> int:
    """Write or check every page."""
    stale = [name for name in PAGES if _differs(FOLDER / name, _text(name))]
    unknown = [path.name for path in FOLDER.glob("*.md") if path.name not in {*PAGES, "README.md"}]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/reference/{name} is out of step with the code: run `make docs`.", file=sys.stderr)
        for name in unknown:
            print(f"docs/reference/{name} is written by nothing: remove it.", file=sys.stderr)
        return 1 if stale or unknown else 0
    for name in stale:
        (FOLDER / name).write_text(_text(name), encoding="utf-8")
        print(f"docs/reference/{name} written")
    return 0


def _text(name: str) -> str:
    return (NOTICE if name.endswith(".md") else "") + PAGES[name]()


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
