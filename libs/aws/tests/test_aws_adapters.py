"""What the adapters make of answers an emulator never gives: partial failures, unprocessed items, lost calls."""

from __future__ import annotations

import msgspec
import pytest

from snavio.aws.dynamodb import DynamoTables
from snavio.aws.errors import Permanent, Refused, Transient
from snavio.aws.retry import ATTEMPTS, Retrying, is_repeatable, pause_before
from snavio.aws.sqs import SqsQueues
from snavio.aws.values import Absent, Change, Outgoing, Put


class Canned:
    """A `Call` that answers from a list and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, operation, parameters, answer, /):
        self.asked.append((operation, parameters))
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return msgspec.convert(given, answer)


def _queues(*answers):
    call = Canned(*answers)
    return SqsQueues(call, "http://127.0.0.1:1"), call


async def test_the_entries_of_a_batch_fail_each_for_its_own_reason():
    queues, _ = _queues(
        {
            "Successful": [{"Id": "0"}],
            "Failed": [
                {"Id": "2", "Code": "InternalError", "SenderFault": False, "Message": "later"},
                {"Id": "1", "Code": "AccessDenied", "SenderFault": True},
            ],
        }
    )
    outcome = await queues.delete("url", ["a", "b", "c", "d"])
    assert [type(fault) for fault in outcome] == [type(None), Permanent, Transient, Transient]
    assert "no answer" in str(outcome[3])


async def test_a_split_send_that_half_fails_says_which_half():
    queues, call = _queues({"Successful": [{"Id": "0"}, {"Id": "2"}]}, Transient("lost"))
    half = "x" * 500_000
    outcome = await queues.send("url", [Outgoing(half), Outgoing("\x00"), Outgoing(half), Outgoing(half)])
    assert [type(fault) for fault in outcome] == [type(None), Permanent, type(None), Transient]
    assert [len(parameters["Entries"]) for _, parameters in call.asked] == [2, 1]


async def test_a_send_in_one_call_that_fails_raises():
    queues, _ = _queues(Transient("lost"))
    with pytest.raises(Transient):
        await queues.send("url", [Outgoing("a"), Outgoing("b")])


async def test_nothing_is_called_when_every_message_is_at_fault():
    queues, call = _queues()
    await queues.send("url", [Outgoing("")])
    await queues.set_visibility("url", [("receipt", -1)])
    assert call.asked == []


@pytest.mark.parametrize(
    ("endpoint", "arn", "url"),
    [
        ("http://localstack:4566/", "arn:aws:sqs:eu-west-1:1:q", "http://localstack:4566/1/q"),
        (
            "https://sqs.eu-west-1.amazonaws.com",
            "arn:aws:sqs:eu-west-1:1:q",
            "https://sqs.eu-west-1.amazonaws.com/1/q",
        ),
        (
            "https://sqs.eu-west-1.api.aws",
            "arn:aws:sqs:eu-west-1:1:q",
            "https://sqs.eu-west-1.amazonaws.com/1/q",
        ),
        (
            "https://sqs.cn-north-1.amazonaws.com.cn",
            "arn:aws-cn:sqs:cn-north-1:1:q",
            "https://sqs.cn-north-1.amazonaws.com.cn/1/q",
        ),
        (
            "https://amazonaws.com.evil.example",
            "arn:aws:sqs:eu-west-1:1:q",
            "https://amazonaws.com.evil.example/1/q",
        ),
    ],
)
def test_a_queue_is_found_at_its_endpoint(endpoint, arn, url):
    assert SqsQueues(Canned(), endpoint).url_of(arn) == url


async def test_items_dynamodb_did_not_write_are_handed_back():
    left = {"pk": {"S": "b"}, "x": {"B": "AAE="}}
    call = Canned({"UnprocessedItems": {"table": [{"PutRequest": {"Item": left}}]}})
    items = [{"pk": "a"}, {"pk": "b", "x": b"\x00\x01"}]
    assert await DynamoTables(call).put_batch("table", items) == items[1:]


async def test_a_scan_goes_on_through_pages_without_items():
    pages = [
        {"Items": [], "LastEvaluatedKey": {"pk": {"S": "x"}}},
        {"Items": [{"pk": {"S": "y"}}]},
    ]
    call = Canned(*pages)
    assert [page async for page in DynamoTables(call).scan("table")] == [[{"pk": "y"}]]
    assert call.asked[1][1]["ExclusiveStartKey"] == {"pk": {"S": "x"}}


async def test_an_index_is_never_asked_to_be_consistent():
    call = Canned({}, {})
    await DynamoTables(call).query("table", ("pk", "a"), index="by-x", consistent=True)
    await DynamoTables(call).query("table", ("pk", "a"))
    assert [parameters.get("ConsistentRead") for _, parameters in call.asked] == [None, True]


async def _no_pause(_seconds):
    return


async def test_what_may_have_acted_is_repeated_only_when_harmless():
    lost = Transient("lost")

    async def attempts(act):
        call = Canned(*[lost] * ATTEMPTS)
        with pytest.raises(Transient):
            await act(
                DynamoTables(Retrying(call, sleep=_no_pause)), SqsQueues(Retrying(call, sleep=_no_pause), "x")
            )
        return len(call.asked)

    assert await attempts(lambda t, _: t.get("table", {"pk": "a"})) == ATTEMPTS
    assert await attempts(lambda t, _: t.put("table", {"pk": "a"})) == ATTEMPTS
    assert await attempts(lambda t, _: t.put_batch("table", [{"pk": "a"}])) == ATTEMPTS
    assert await attempts(lambda t, _: t.transact([Put("table", {"pk": "a"})])) == ATTEMPTS
    assert await attempts(lambda _, q: q.delete("url", ["r"])) == ATTEMPTS
    assert await attempts(lambda t, _: t.put("table", {"pk": "a"}, condition=Absent("pk"))) == 1
    assert await attempts(lambda t, _: t.update("table", {"pk": "a"}, Change(add={"n": 1}))) == 1
    assert await attempts(lambda _, q: q.send("url", [Outgoing("x")])) == 1


async def test_a_retried_transaction_keeps_its_token():
    call = Canned(Transient("lost"), {})
    await DynamoTables(Retrying(call, sleep=_no_pause)).transact([Put("table", {"pk": "a"})])
    first, second = (parameters["ClientRequestToken"] for _, parameters in call.asked)
    assert first == second


async def test_what_was_refused_is_repeated_whatever_it_is():
    call = Canned(Refused("throttled"), Refused("throttled"), {"Attributes": {"n": {"N": "1"}}})
    item = await DynamoTables(Retrying(call, sleep=_no_pause)).update(
        "table", {"pk": "a"}, Change(add={"n": 1})
    )
    assert item == {"n": 1}


async def test_what_is_permanent_is_not_repeated():
    call = Canned(Permanent("denied"))
    with pytest.raises(Permanent):
        await DynamoTables(Retrying(call, sleep=_no_pause)).get("table", {"pk": "a"})


def test_pauses_grow_and_stay_below_a_second():
    pauses = [pause_before(attempt, 1.0) for attempt in range(1, 8)]
    assert pauses == sorted(pauses)
    assert pauses[0] > 0
    assert pauses[-1] == 1.0
    assert pause_before(3, 0.0) == 0


def test_an_unknown_operation_is_not_repeated():
    assert not is_repeatable("SendMessageBatch", {})
    assert not is_repeatable("ReceiveMessage", {})
