from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snavio.control.decoding import faults_in, name_faults, read
from snavio.control.problems import Invalid
from snavio.control.routes import RouteSpec
from snavio.control.tenants import TenantSpec


def test_every_fault_is_named_with_its_place():
    body = {
        "dedupe_mode": "sometimes",
        "expected_drain_seconds": 0,
        "rate_limit": {"interval_seconds": "x", "burst": 0, "colour": 1},
        "fairness": {"dominant_share": 2},
        "expires_at": "2026-11-18T00:00:00",
        "schema": 7,
        "nonsense": True,
    }
    found = {(fault.kind, fault.pointer) for fault in faults_in(body, RouteSpec)}
    assert found == {
        ("missing-field", "/queue_arn"),
        ("bad-value", "/dedupe_mode"),
        ("bad-value", "/expected_drain_seconds"),
        ("missing-field", "/rate_limit/limit"),
        ("bad-value", "/rate_limit/interval_seconds"),
        ("bad-value", "/rate_limit/burst"),
        ("unknown-field", "/rate_limit/colour"),
        ("bad-value", "/fairness/dominant_share"),
        ("bad-value", "/expires_at"),
        ("bad-value", "/schema"),
        ("unknown-field", "/nonsense"),
    }


def test_items_of_a_list_are_named_one_by_one():
    good = "arn:aws:iam::222222222222:role/Sender"
    body = {"tenant": "acme", "sender_role_arns": [good, "x", good, 7]}
    assert [fault.pointer for fault in faults_in(body, TenantSpec)] == [
        "/sender_role_arns/1",
        "/sender_role_arns/3",
    ]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_fields = st.sampled_from([*RouteSpec.__struct_fields__, "other"])


@given(st.dictionaries(_fields, _json) | _json)
def test_what_has_no_faults_can_be_read_and_what_has_cannot(body):
    if faults_in(body, RouteSpec):
        with pytest.raises(Invalid):
            read(body, RouteSpec)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(body, RouteSpec)
    else:
        assert isinstance(read(body, RouteSpec), RouteSpec)


@pytest.mark.parametrize(
    ("names", "pointers"),
    [
        ({"tenant": "acme", "service": "a", "target": "0-x", "command": "a.b_c-d"}, []),
        (
            {"tenant": "Acme", "service": "-a", "target": "x" * 64, "command": "A"},
            ["/tenant", "/service", "/target", "/command"],
        ),
        ({"tenant": "acme\n", "command": ""}, ["/tenant", "/command"]),
        ({"seq": "anything"}, []),
    ],
)
def test_names_in_paths_are_checked_by_what_they_name(names, pointers):
    assert [fault.pointer for fault in name_faults(names)] == pointers
