"""What the control plane refuses and why, as values a person can act on. Each kind has a stable short name."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from snavio.aws.errors import SnavioError


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with a request."""

    kind: str
    detail: str
    pointer: str = ""
    """Where in the request, as a JSON Pointer; empty when it is about no single part."""


class ControlError(SnavioError):
    """A request the control plane does not carry out; nothing of it has taken effect unless it says so."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Invalid(ControlError):  # noqa: N818 - reads as what the caller is told
    """The request cannot be carried out as it stands. Names every fault found, not only the first."""

    def __init__(self, kind: str, detail: str, faults: Sequence[Fault], *, report: object = None) -> None:
        super().__init__(kind, detail)
        self.faults = tuple(faults)
        self.report = report
        """What else was found out, where the caller asked for it."""


class Forbidden(ControlError):  # noqa: N818 - reads as what the caller is told
    """The caller may not do this."""


class Missing(ControlError):  # noqa: N818 - reads as what the caller is told
    """What the request is about does not exist, or not for this caller."""


class Conflict(ControlError):  # noqa: N818 - reads as what the caller is told
    """Somebody else holds the name, or the thing is in a state that does not allow this."""


class Unavailable(ControlError):  # noqa: N818 - reads as what the caller is told
    """AWS did not answer; the same request may be sent again and goes on where it stopped."""


def raise_faults(faults: Sequence[Fault]) -> None:
    """Raise `Invalid` when there are any."""
    if faults:
        count = "one fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise Invalid("invalid-request", f"The request has {count}.", faults)
