"""AWS's error answers as the errors of `snavio.aws.errors`: decided here once, for every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snavio.aws.attributes import decode_item
from snavio.aws.errors import ConditionFailed, NotFound, Permanent, Refused, Transient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snavio.aws.errors import SnavioError
    from snavio.aws.values import Fault

# AWS turned the request away before acting on it.
_REFUSED = frozenset(
    {
        "BandwidthLimitExceeded",
        "ExpiredToken",
        "ExpiredTokenException",
        "KmsThrottled",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestExpired",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflict",
        "TransactionConflictException",
    }
)
_TRANSIENT = frozenset(
    {
        "ConditionalRequestConflict",
        "DependencyTimeoutException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "KMSInternalException",
        "KeyUnavailableException",
        "OperationAborted",
        "ReplicatedWriteConflictException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "TransactionInProgressException",
    }
)
_NOT_FOUND = frozenset(
    {
        "NoSuchBucket",
        "NoSuchKey",
        "NonExistentQueue",
        "NotFoundException",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "TableNotFoundException",
    }
)
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500


def short_code(code: str) -> str:
    """The last word of a code: AWS writes `AWS.SimpleQueueService.X`, `com.amazonaws.sqs#X` and plain `X`."""
    return code.rpartition("#")[2].rpartition(".")[2]


def fault_of(
    operation: str, answer: Mapping[str, Any], *, code: str, message: str, status: int
) -> SnavioError:
    """The error to raise for an error answer; `answer` is its whole body, for the items it may carry."""
    code = short_code(code)
    text = f"{operation}: {code}: {message}" if message else f"{operation}: {code or status}"
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(text, old=_old(answer))
    if code == "TransactionCanceledException":
        return _cancelled(text, _reasons(answer))
    if code in _REFUSED or status == _TOO_MANY_REQUESTS:
        return Refused(text)
    if code in _TRANSIENT or status >= _SERVER_ERROR:
        return Transient(text)
    if code in _NOT_FOUND:
        return NotFound(text, code=code)
    return Permanent(text, code=code)


def entry_fault(operation: str, code: str, message: str, *, sender_fault: bool) -> Fault:
    """Why one entry of a batch failed."""
    code = short_code(code)
    text = f"{operation}: {code}: {message}"
    if code in _REFUSED:
        return Refused(text)
    if code in _TRANSIENT or not sender_fault:
        return Transient(text)
    return Permanent(text, code=code)


def _cancelled(text: str, reasons: Sequence[Mapping[str, Any]]) -> SnavioError:
    """A failed condition is an answer and outweighs the rest; a conflict may pass; anything else will not."""
    codes = [reason.get("Code") or "None" for reason in reasons]
    if "ConditionalCheckFailed" in codes:
        index = codes.index("ConditionalCheckFailed")
        return ConditionFailed(text, old=_old(reasons[index]), index=index)
    wrong = [code for code in codes if code != "None" and code not in _REFUSED]
    if wrong:
        return Permanent(text, code=wrong[0])
    return Refused(text)


def _reasons(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: Any = answer.get("CancellationReasons")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _old(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    item = answer.get("Item")
    return decode_item(item) if isinstance(item, dict) and item else None  # pyright: ignore[reportUnknownArgumentType]
