"""The page of environment variables."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from docstrings import NOTICE

from snavio.runtime.common_config import CommonConfig
from snavio.runtime.config import SERVICES
from snavio.runtime.config_docs import document

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHARED = "<service>"


def environment_page() -> str:
    """The variables every worker reads, then those of each service."""
    lines = [
        NOTICE,
        "",
        "# Environment variables",
        "",
        "A worker reads its settings once, when it starts. It refuses a value it cannot use and a `SNAVIO_*` variable it does not",
        "know, and names every one of them at once. Variables of other services are left alone, so one environment can serve all.",
        "",
        "## Every worker",
        "",
        "`SNAVIO_<SERVICE>_…` wins over `SNAVIO_…`, for that service alone.",
        "",
        document(CommonConfig, _SHARED),
    ]
    common = set(document(CommonConfig, _SHARED).splitlines())
    for service in SERVICES:
        for config in _configs(service):
            own = [
                line
                for line in document(config, service).splitlines()
                if line.replace(f"SNAVIO_{service.upper()}_", f"SNAVIO_{_SHARED.upper()}_") not in common
            ]
            if own:
                header = document(CommonConfig, _SHARED).splitlines()[:2]
                lines += [f"## {service}", "", *header, *own, ""]
    return "\n".join(lines)


def _configs(service: str) -> Iterator[type[CommonConfig]]:
    """The config Structs a service defines, wherever in it they stand."""
    try:
        package = importlib.import_module(f"snavio.{service}")
    except ModuleNotFoundError:
        return
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            loaded = importlib.import_module(module.name)
            for value in vars(loaded).values():
                if (
                    isinstance(value, type)
                    and issubclass(value, CommonConfig)
                    and value.__module__ == loaded.__name__
                ):
                    yield value
