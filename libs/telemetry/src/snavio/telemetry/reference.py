"""The published reference: JSON Schemas and the AsyncAPI document, as the files `make docs` writes."""

from __future__ import annotations

import msgspec

from snavio.telemetry.asyncapi import asyncapi
from snavio.telemetry.schemas import documents


def reference_files() -> dict[str, str]:
    """The text of every file by its place under docs/reference."""
    found = {f"schemas/{name}": document for name, document in documents().items()}
    found["asyncapi.json"] = asyncapi()
    return {
        name: msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
        for name, document in found.items()
    }
