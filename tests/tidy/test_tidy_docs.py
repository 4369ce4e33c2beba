"""What the pages point at is there: files, headings and make targets."""

import re
import unicodedata
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def pages(tracked):
    return [path for path in tracked if path.suffix == ".md"]


def prose(path):
    return FENCE.sub("", path.read_text())


def anchor(heading):
    """The fragment GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    kept = [c for c in text if c in " -_" or unicodedata.category(c)[0] in "LN"]
    return "".join(kept).replace(" ", "-")


def anchors(path):
    counts, found = {}, set()
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", prose(path), re.MULTILINE):
        name = anchor(heading)
        seen = counts.get(name, 0)
        counts[name] = seen + 1
        found.add(f"{name}-{seen}" if seen else name)
    return found


def test_relative_links_lead_somewhere(root, tracked):
    broken = []
    for page in pages(tracked):
        for target in LINK.findall(prose(page)):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            place, _, fragment = unquote(target).partition("#")
            aim = (root / place.lstrip("/")) if place.startswith("/") else (page.parent / place)
            aim = aim.resolve() if place else page
            if not aim.exists() or (fragment and aim.suffix == ".md" and fragment not in anchors(aim)):
                broken.append(f"{page.relative_to(root)}: {target}")
    assert broken == []


def test_every_make_target_a_page_names_exists(root, tracked):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(), re.MULTILINE))
    missing = [
        f"{page.relative_to(root)}: make {target}"
        for page in pages(tracked)
        for target in re.findall(r"(?:^|`|\$ )make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE)
        if target not in targets
    ]
    assert missing == []


def test_every_phony_target_explains_itself(root):
    makefile = (root / "Makefile").read_text()
    phony = set(re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE)) - {"help"}
    explained = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    assert phony == explained


def test_every_decision_is_in_the_index(root):
    folder = root / "docs" / "adr"
    records = {path.name for path in folder.glob("[0-9]*.md")} - {"0000-template.md"}
    index = (folder / "README.md").read_text()
    assert sorted(name for name in records if f"({name})" not in index) == []
    numbers = [name[:4] for name in records]
    assert len(numbers) == len(set(numbers))


def test_the_quickstart_of_the_readme_is_the_one_that_is_run():
    """The lines of the onboarding page are typed by a test; the README shows the very same."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "howto" / "onboard.md").read_text()
    first_block = page.split("```sh\n")[1].split("```")[0]
    assert first_block.count("snavio ") >= 6
    assert first_block in (root / "README.md").read_text()
