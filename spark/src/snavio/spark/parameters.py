"""What is typed after an option, checked: a wrong one is wrong usage, and starts nothing."""

from __future__ import annotations

import math
from typing import Any

import click

from snavio.spark.reports import Prices


class Number(click.FloatRange):
    """A number within bounds, and really a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Price(click.ParamType[tuple[str, float]]):
    """`NAME=USD`: one of the prices, and what it is."""

    name = "price"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """The name and the price."""
        name, _, usd = value.partition("=")
        if name not in Prices.__struct_fields__:
            self.fail(f"{value!r} is none of {', '.join(Prices.__struct_fields__)}=USD.", param, ctx)
        return name, _USD.convert(usd, param, ctx)


_USD = Number(0)
