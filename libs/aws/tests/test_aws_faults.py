"""AWS's error answers become the errors callers decide by."""

from __future__ import annotations

import pytest

from snavio.aws.errors import ConditionFailed, NotFound, Permanent, Refused, Transient
from snavio.aws.faults import entry_fault, fault_of


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottlingException", 400, Refused),
        ("com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", 400, Refused),
        ("com.amazon.coral.availability#ThrottlingException", 400, Refused),
        ("RequestThrottled", 403, Refused),
        ("SlowDown", 503, Refused),
        ("OverLimit", 403, Refused),
        ("TransactionConflictException", 400, Refused),
        ("ExpiredTokenException", 400, Refused),
        ("Whatever", 429, Refused),
        ("InternalServerError", 500, Transient),
        ("", 502, Transient),
        ("ServiceUnavailable", 503, Transient),
        ("RequestTimeout", 400, Transient),
        ("ConditionalRequestConflict", 409, Transient),
        ("TransactionInProgressException", 400, Transient),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, NotFound),
        ("com.amazonaws.sqs#QueueDoesNotExist", 400, NotFound),
        ("ResourceNotFoundException", 400, NotFound),
        ("NoSuchKey", 404, NotFound),
        ("NoSuchBucket", 404, NotFound),
        ("AccessDeniedException", 400, Permanent),
        ("AccessDenied", 403, Permanent),
        ("ValidationException", 400, Permanent),
        ("", 404, Permanent),
    ],
)
def test_a_code_becomes_the_kind_of_error_a_caller_decides_by(code, status, kind):
    fault = fault_of("Op", {}, code=code, message="why", status=status)
    assert type(fault) is kind
    if isinstance(fault, Permanent):
        assert fault.code == code.rpartition("#")[2].rpartition(".")[2]


def test_a_failed_condition_carries_the_old_item():
    answer = {"Item": {"pk": {"S": "a"}, "n": {"N": "1"}}}
    fault = fault_of("PutItem", answer, code="ConditionalCheckFailedException", message="", status=400)
    assert isinstance(fault, ConditionFailed)
    assert fault.old == {"pk": "a", "n": 1}


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (["None", "ConditionalCheckFailed"], ConditionFailed),
        (["TransactionConflict", "ConditionalCheckFailed"], ConditionFailed),
        (["None", "TransactionConflict"], Refused),
        (["ThrottlingError", "ProvisionedThroughputExceeded"], Refused),
        (["TransactionConflict", "ValidationError"], Permanent),
        (["ItemCollectionSizeLimitExceeded"], Permanent),
        ([], Refused),
    ],
)
def test_a_cancelled_transaction_is_told_by_its_reasons(codes, kind):
    answer = {
        "CancellationReasons": [{"Code": code, "Item": {"pk": {"S": str(n)}}} for n, code in enumerate(codes)]
    }
    fault = fault_of("Op", answer, code="TransactionCanceledException", message="", status=400)
    assert type(fault) is kind
    if isinstance(fault, ConditionFailed):
        assert (fault.index, fault.old) == (1, {"pk": "1"})


@pytest.mark.parametrize(
    ("code", "sender_fault", "kind"),
    [
        ("InternalError", False, Transient),
        ("SomethingNew", False, Transient),
        ("AWS.SimpleQueueService.SomethingNew", True, Permanent),
        ("KmsThrottled", True, Refused),
        ("ReceiptHandleIsInvalid", True, Permanent),
    ],
)
def test_a_failed_entry_is_told_by_whose_fault_it_was(code, sender_fault, kind):
    assert type(entry_fault("Op", code, "why", sender_fault=sender_fault)) is kind
