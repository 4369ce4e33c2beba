"""How far the audit has come, as it left word in the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from snavio.spark.folders import Folder

STATE = "_state/audit.json"


class State(msgspec.Struct, frozen=True):
    """How far the audit has come."""

    audited_until: int
    """Every window before this one has been audited at least once."""


def read_state(folder: Folder) -> State | None:
    """How far it has come; None before its first run."""
    body = folder.read(STATE)
    return msgspec.json.decode(body, type=State) if body else None


def write_state(folder: Folder, state: State) -> None:
    """Remember it."""
    folder.write(STATE, msgspec.json.encode(state))
