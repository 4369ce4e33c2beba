"""The page of AWS resource names."""

from __future__ import annotations

import inspect
from itertools import pairwise

from docstrings import NOTICE, one_line

from snavio.wire.names import COMMAND_PATTERN, NAME_PATTERN, Names

_EXAMPLES = {"queue": "snavio-ingress", "service": "shield", "tenant": "acme"}


def names_page() -> str:
    """Every resource of an installation, with the name it has by default."""
    source = inspect.getsource(Names).splitlines()
    headings = [(number, line.strip()[2:]) for number, line in enumerate(source) if line.startswith("    # ")]
    lines = [
        NOTICE,
        "",
        "# Names of AWS resources",
        "",
        "Every name follows from the prefix (`SNAVIO_PREFIX`, by default `snavio`), the account and the region, so that several",
        "installations can share an account. Below, the prefix is `snavio`, the tenant `acme`.",
        "",
        f"A tenant, a service and a target match `{NAME_PATTERN}`; a command matches `{COMMAND_PATTERN}`.",
    ]
    for (start, heading), (end, _) in pairwise([*headings, (len(source), "")]):
        if heading == "ARNs":
            continue
        lines += ["", f"## {heading}", "", "| name | what it is |", "|---|---|"]
        lines += [
            _row(line.split("def ")[1].split("(")[0]) for line in source[start:end] if "    def " in line
        ]
    return "\n".join([*lines, ""])


def _row(attribute: str) -> str:
    names = Names()
    member = inspect.getattr_static(Names, attribute)
    if isinstance(member, property):
        return f"| `{getattr(names, attribute)}` | {one_line(member.__doc__)} |"
    parameter = list(inspect.signature(member).parameters)[1]
    return f"| `{getattr(names, attribute)(_EXAMPLES[parameter])}` | {one_line(member.__doc__)} |"
