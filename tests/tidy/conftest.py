"""The workspace as data: tests in this folder read the files, they never import the product."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Member:
    """One folder of the uv workspace."""

    folder: Path

    @property
    def short(self) -> str:
        return self.folder.name

    @property
    def distribution(self) -> str:
        return f"snavio-{self.short}"

    @property
    def package(self) -> str:
        return f"snavio.{self.short}"

    @property
    def sources(self) -> list[Path]:
        return sorted((self.folder / "src").rglob("*.py"))

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text())

    @property
    def is_empty(self) -> bool:
        """A member laid out but not begun: docstrings only."""
        return all(len(ast.parse(path.read_text()).body) <= 1 for path in self.sources)


MEMBERS = [Member(path.parent) for path in sorted(ROOT.glob("*/*/pyproject.toml"))] + [
    Member(path.parent) for path in sorted(ROOT.glob("spark/pyproject.toml"))
]


def tracked_files() -> list[Path]:
    """Every file git has or would have; outside a clone, every file that is not hidden or built."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if ".venv" not in p.parts]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `member` runs once for each."""
    if "member" in metafunc.fixturenames:
        metafunc.parametrize("member", MEMBERS, ids=[member.short for member in MEMBERS])


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def members() -> list[Member]:
    return MEMBERS


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    return tracked_files()


@pytest.fixture(scope="session")
def workspace(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())
