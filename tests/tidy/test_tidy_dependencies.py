"""A member declares what it imports, and imports what it declares."""

import ast
import re
import sys
from importlib import metadata

import pytest

# Declared for what they do at run time, though no source file imports them.
NEVER_IMPORTED = {
    ("embedded", "cryptography"): "MiniStack signs with asymmetric keys only when it is installed",
    ("embedded", "ministack"): "imported by name, once its settings are in the environment",
    ("gateway", "httptools"): "uvicorn parses HTTP with it, by name",
}


def normalised(requirement):
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;@]", requirement, maxsplit=1)[0]).lower()


def imported_modules(path):
    """The modules a file imports, whole: `from a.b import c` may mean module `a.b` or module `a.b.c`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


@pytest.fixture(scope="module")
def owner_of_module():
    """The distribution each installed module belongs to, by its files: several may share a namespace."""
    owners = {}
    for distribution in metadata.distributions():
        name = normalised(distribution.metadata["Name"])
        for file in distribution.files or ():
            if file.suffix in {".py", ".so"} and ".." not in file.parts:
                stem = file.name.split(".", 1)[0]
                parts = file.parts[:-1] if stem == "__init__" else (*file.parts[:-1], stem)
                owners.setdefault(".".join(parts), name)
    return owners


def distribution_of(module, owners):
    first, *rest = module.split(".")
    if first in sys.stdlib_module_names or first == "__future__":
        return None
    if first == "snavio":
        return f"snavio-{rest[0]}"
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if owner := owners.get(".".join(parts[:length])):
            return owner
    return f"(not installed: {module})"


def test_a_member_declares_exactly_what_it_imports(member, owner_of_module):
    if member.is_empty:
        pytest.skip("laid out, not begun")
    imported = {
        owner
        for path in member.sources
        for module in imported_modules(path)
        if (owner := distribution_of(module, owner_of_module)) not in {None, member.distribution}
    }
    project = member.pyproject["project"]
    declared = {normalised(requirement) for requirement in project.get("dependencies", [])}
    optional = {
        normalised(requirement)
        for requirements in project.get("optional-dependencies", {}).values()
        for requirement in requirements
    }
    excused = {name for folder, name in NEVER_IMPORTED if folder == member.short}
    assert sorted(imported - declared - optional) == [], "imported but not declared"
    assert sorted(declared - imported - excused) == [], "declared but not imported"


def test_a_member_takes_its_siblings_from_the_workspace(member):
    """Without a workspace source uv would look for `snavio-…` on the package index."""
    siblings = {
        normalised(requirement)
        for requirement in member.pyproject["project"].get("dependencies", [])
        if requirement.startswith("snavio-")
    }
    sources = member.pyproject.get("tool", {}).get("uv", {}).get("sources", {})
    assert set(sources) == siblings
