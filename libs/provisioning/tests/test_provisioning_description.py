"""The description is a value: what must hold of it can be read off it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.provisioning.describe import describe
from snavio.provisioning.policies import Statement, document, meaning
from snavio.wire.names import Names

PLATFORM = describe(Names(prefix="p", region="eu-west-1", account="111122223333"))


@pytest.mark.parametrize("role", PLATFORM.roles, ids=lambda role: role.name)
def test_a_role_policy_fits_what_iam_accepts(role):
    rendered = document(role.policy, key_arn=lambda _: "arn:aws:kms:eu-west-1:111122223333:key/" + "0" * 36)
    assert len(json.dumps(rendered, separators=(",", ":"))) < 10_240
    sids = [statement.sid for statement in role.policy]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)
    assert all(statement.resources or statement.not_resources for statement in role.policy)


def test_only_what_has_no_arn_is_granted_everywhere():
    everywhere = {
        action
        for role in PLATFORM.roles
        for statement in role.policy
        if statement.resources == ("*",)
        for action in statement.actions
    }
    assert everywhere == {
        "cloudwatch:PutMetricData",
        "cloudwatch:GetMetricData",
        "cloudwatch:GetMetricStatistics",
        "ses:SendEmail",
        "ses:SendRawEmail",
        "sns:SetSubscriptionAttributes",
        "sqs:ListQueues",
    }


def test_live_and_replayed_commands_never_take_the_same_way():
    live, replayed = PLATFORM.rules
    assert live.pattern["replay-name"] == [{"exists": False}]
    assert replayed.pattern["replay-name"] == [{"exists": True}]
    assert live.target_arn != replayed.target_arn


def test_every_working_queue_has_a_dead_letter_queue_that_takes_from_it_alone():
    queues = {queue.name: queue for queue in PLATFORM.queues}
    working = [queue for queue in queues.values() if queue.dlq]
    assert [queue.name for queue in working] == ["p-ingress", "p-fast", "p-slow"]
    for queue in working:
        assert queues[queue.dlq].source == queue.name
        assert queues[queue.dlq].retention_seconds > queue.retention_seconds


texts = st.text("abc:*/", min_size=1, max_size=4)
statements = st.builds(
    Statement,
    sid=texts,
    actions=st.lists(texts, min_size=1, max_size=3, unique=True).map(tuple),
    resources=st.lists(texts, min_size=1, max_size=3, unique=True).map(tuple),
    principals=st.just({"AWS": ("1", "2")}),
)


def as_aws_gives_it_back(policy):
    """Statements and lists in another order, a list of one as its element, the whole as text."""

    def turned(value):
        if isinstance(value, dict):
            return {key: turned(each) for key, each in reversed(value.items())}
        if isinstance(value, list):
            return value[0] if len(value) == 1 else list(reversed(value))
        return value

    statements = [turned(statement) for statement in reversed(policy["Statement"])]
    return json.dumps({"Statement": statements[0] if len(statements) == 1 else statements})


@given(st.lists(statements, min_size=1, max_size=3))
def test_a_policy_given_back_in_another_form_is_no_drift(policy):
    rendered = document(policy)
    assert meaning(as_aws_gives_it_back(rendered)) == meaning(rendered)


@given(statements, texts)
def test_one_more_action_is_drift(statement, action):
    wider = Statement(
        sid=statement.sid, actions=(*statement.actions, action + "!"), resources=statement.resources
    )
    narrow = Statement(sid=statement.sid, actions=statement.actions, resources=statement.resources)
    assert meaning(document([wider])) != meaning(document([narrow]))
