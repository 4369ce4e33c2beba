"""One reason out of a group of concurrent failures."""

from __future__ import annotations

from snavio.aws.errors import SnavioError


def first_reason(failures: BaseExceptionGroup[BaseException]) -> SnavioError | None:
    """The first error raised on purpose, however deep it is nested; None when anything else went wrong too."""
    faults, others = failures.split(SnavioError)
    if faults is None or others is not None:
        return None
    for failure in faults.exceptions:
        return first_reason(failure) if isinstance(failure, BaseExceptionGroup) else failure
    return None
