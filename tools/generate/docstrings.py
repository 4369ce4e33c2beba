"""The docstrings below the attributes of classes, which exist only in the source."""

from __future__ import annotations

import ast
import inspect
from typing import Any

NOTICE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def attribute_docs(owner: type[Any]) -> dict[str, str]:
    """Attribute to its docstring, for a class and everything it inherits; the nearest wins."""
    found: dict[str, str] = {}
    for cls in reversed(owner.__mro__):
        if cls.__module__.startswith("snavio."):
            found |= _own(cls)
    return found


def _own(cls: type[Any]) -> dict[str, str]:
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body[0]
    if not isinstance(body, ast.ClassDef):
        return {}
    found: dict[str, str] = {}
    for statement, below in zip(body.body, body.body[1:], strict=False):
        name = _assigned(statement)
        if name and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[name] = str(below.value.value)
    return found


def _assigned(statement: ast.stmt) -> str | None:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return None


def one_line(text: str | None) -> str:
    """The first paragraph of a docstring as one line of a table."""
    return " ".join((inspect.cleandoc(text or "").split("\n\n")[0]).split()).replace("|", "\\|")
