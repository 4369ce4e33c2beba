"""requirements.txt is what `make lock` would write, as far as can be told without a network."""

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIN = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^]]*])?==([^\s;]+)")
VIA = re.compile(r"\s+#\s+(?:via )?(snavio-[a-z-]+)")


def pins_of(path):
    """Name to versions of every line; a distribution may be locked twice, under two markers."""
    pins = {}
    for line in path.read_text().splitlines():
        if match := PIN.match(line):
            pins.setdefault(canonicalize_name(match[1]), []).append(match[2])
    return pins


@pytest.fixture(scope="module")
def locked(root):
    return pins_of(root / "requirements.txt")


@pytest.fixture(scope="module")
def required(members, workspace):
    """Every third-party requirement written down in a pyproject, with where it stands."""
    stated = [(text, "pyproject.toml") for group in workspace["dependency-groups"].values() for text in group]
    for member in members:
        project = member.pyproject["project"]
        groups = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
        stated += [(text, member.distribution) for group in groups for text in group]
    return [(Requirement(text), place) for text, place in stated if not text.startswith("snavio-")]


def test_every_requirement_is_locked_at_a_version_it_accepts(locked, required):
    unlocked = [f"{place}: {req}" for req, place in required if canonicalize_name(req.name) not in locked]
    refused = [
        f"{place}: {req} is locked at {version}"
        for req, place in required
        for version in locked.get(canonicalize_name(req.name), ())
        if not req.specifier.contains(version, prereleases=True)
    ]
    assert unlocked + refused == [], "run `make lock`"


def test_no_line_is_locked_for_a_member_that_no_longer_asks(root, required):
    """uv writes `# via` under each line, so a lock that was not renewed gives itself away."""
    asked = {(canonicalize_name(req.name), place) for req, place in required}
    stale, name = [], ""
    for line in (root / "requirements.txt").read_text().splitlines():
        if match := PIN.match(line):
            name = canonicalize_name(match[1])
        elif (match := VIA.fullmatch(line)) and (name, match[1]) not in asked:
            stale.append(f"{name} for {match[1]}")
    assert stale == [], "run `make lock`"


def test_the_image_has_the_versions_the_tests_ran_with(root, locked, required):
    image = pins_of(root / "deploy" / "requirements.txt")
    assert {name: pins for name, pins in image.items() if locked.get(name) != pins} == {}, "run `make lock`"
    services = {f"snavio-{path.parent.name}" for path in root.glob("services/*/pyproject.toml")}
    missing = {req.name for req, place in required if place in services} - image.keys()
    assert missing == set(), "run `make lock`"


@pytest.mark.parametrize("name", ["requirements.txt", "deploy/requirements.txt"])
def test_every_locked_line_has_a_hash(root, name):
    text = (root / name).read_text().replace("\\\n", " ")
    unhashed = [line for line in text.splitlines() if "==" in line and "--hash=sha256:" not in line]
    assert unhashed == []
