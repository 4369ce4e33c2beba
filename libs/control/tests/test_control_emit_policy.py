from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from snavio.control.emit_policy import POLICY_CHARACTERS, TRUST_CHARACTERS, emit_faults, emit_role, role_name
from snavio.control.models import Service, Tenant
from snavio.wire.names import Names

NAMES = Names(account="111111111111")
BILLING = "arn:aws:iam::222222222222:role/BillingSender"
ACCOUNT = "arn:aws:iam::222222222222:role/path/AccountSender"


def tenant(*senders: str) -> Tenant:
    return Tenant(tenant="acme", registration="r", created_at=0.0, sender_role_arns=senders)


def service(name: str, sender: str | None = None) -> Service:
    return Service(tenant="acme", service=name, created_at=0.0, sender_role_arn=sender)


def test_the_documents_are_those_of_the_contract():
    role = emit_role(NAMES, tenant(BILLING), [service("billing"), service("account", ACCOUNT)])
    assert json.loads(role.trust) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": arn},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:RoleSessionName": name}},
            }
            for arn, name in ((BILLING, "BillingSender"), (ACCOUNT, "AccountSender"))
        ],
    }
    assert json.loads(role.policy) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": "events:PutEvents",
                "Resource": "arn:aws:events:us-east-1:111111111111:event-bus/snavio-command-bus",
                "Condition": {
                    "StringEquals": {"events:source": source},
                    "StringLike": {"aws:userid": user},
                },
            }
            for source, user in (("acme/account", "*:AccountSender"), ("acme/billing", "*:BillingSender"))
        ],
    }


def test_a_tenant_without_senders_can_be_assumed_by_nobody():
    role = emit_role(NAMES, tenant(), [service("billing")])
    (only,) = json.loads(role.trust)["Statement"]
    assert only == {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}
    assert role.policy is None


_roles = st.from_regex(r"arn:aws:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_-]{2,20}", fullmatch=True)


@given(
    senders=st.sets(_roles, max_size=4),
    bound=st.lists(st.one_of(st.none(), _roles), max_size=6),
)
def test_a_role_may_emit_exactly_the_sources_registered_for_it(senders, bound):
    registered = tenant(*sorted(senders))
    services = [service(f"s{number}", sender) for number, sender in enumerate(bound)]
    role = emit_role(NAMES, registered, services)
    allowed: set[tuple[str, str]] = set()
    for statement in json.loads(role.policy)["Statement"] if role.policy else []:
        sources = statement["Condition"]["StringEquals"]["events:source"]
        users = statement["Condition"]["StringLike"]["aws:userid"]
        allowed |= {
            (source, user)
            for source in ([sources] if isinstance(sources, str) else sources)
            for user in ([users] if isinstance(users, str) else users)
        }
    expected = {
        (each.source, f"*:{role_name(arn)}")
        for each in services
        for arn in ([each.sender_role_arn] if each.sender_role_arn else senders)
    }
    assert allowed == expected


def test_senders_that_could_pass_for_each_other_are_refused():
    twin = BILLING.replace("222222222222", "333333333333")
    (fault,) = emit_faults(NAMES, tenant(BILLING, twin), [])
    assert fault.kind == "ambiguous-sender-role"
    # IAM compares role names without case.
    (fault,) = emit_faults(NAMES, tenant(BILLING, BILLING.replace("Billing", "BILLING")), [])
    assert fault.kind == "ambiguous-sender-role"


def test_what_iam_would_not_store_is_refused_before_anything_is_written():
    many = [f"arn:aws:iam::222222222222:role/Sender{number}" for number in range(20)]
    kinds = {fault.kind for fault in emit_faults(NAMES, tenant(*many), [])}
    assert kinds == {"too-many-sender-roles"}
    services = [service(f"service-with-a-long-name-{number}", BILLING) for number in range(400)]
    kinds = {fault.kind for fault in emit_faults(NAMES, tenant(), services)}
    assert kinds == {"too-many-services"}
    # Three hundred fit, because sources of one sender share a statement.
    assert (
        emit_faults(NAMES, tenant(), [service(f"service-{number}", BILLING) for number in range(300)]) == []
    )
    assert (TRUST_CHARACTERS, POLICY_CHARACTERS) == (2048, 10_240)
