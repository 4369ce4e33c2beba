"""Prices: one file, each with its unit and the page to check it against."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec

from snavio.aws.errors import SnavioError

DEFAULT_REGION = "us-east-1"
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Price(msgspec.Struct, frozen=True, rename={"source": "from"}, forbid_unknown_fields=True):
    """What so many of a unit cost."""

    usd: Annotated[float, msgspec.Meta(ge=0)]
    per: Positive
    unit: str
    source: str
    """The price page to check it against."""


class PriceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every price, by region and meter."""

    currency: str
    recorded: str
    """The month in which they were written down."""
    left_out: str
    regions: dict[str, dict[str, Price]]


class Prices:
    """The prices of one region."""

    def __init__(self, region: str, recorded: str, prices: Mapping[str, Price]) -> None:
        self.region = region
        self.recorded = recorded
        self.of_meter = prices

    def usd(self, meter: str, amount: float) -> float:
        """What so much costs."""
        price = self.of_meter[meter]
        return amount * price.usd / price.per


def load_prices(region: str = DEFAULT_REGION, path: Path | None = None) -> Prices:
    """The prices of a region, from a file or as shipped. Raises `SnavioError` for a file or region of no use."""
    try:
        text = path.read_bytes() if path else _shipped()
        file = msgspec.json.decode(text, type=PriceFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise SnavioError(f"The prices cannot be read: {error}.") from error
    found = file.regions.get(region)
    if found is None:
        known = ", ".join(sorted(file.regions))
        raise SnavioError(
            f"There are no prices for {region}, only for {known}. Copy the file, add the region's, and name it with --prices."
        )
    missing = shipped_meters() - found.keys()
    if missing:
        raise SnavioError(f"The prices of {region} lack {', '.join(sorted(missing))}.")
    return Prices(region, file.recorded, found)


def shipped_meters() -> frozenset[str]:
    """Everything that has to have a price."""
    file = msgspec.json.decode(_shipped(), type=PriceFile)
    return frozenset(file.regions[DEFAULT_REGION])


def _shipped() -> bytes:
    return resources.files("snavio.cli.cost").joinpath("prices.json").read_bytes()
