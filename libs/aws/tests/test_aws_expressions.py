"""The expressions mean to DynamoDB what the fake takes the conditions to mean.

MiniStack's own evaluator, called in process, is the independent reading of an expression.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ministack.services import dynamodb as ministack

from snavio.aws import expressions
from snavio.aws.attributes import decode_item, encode_item
from snavio.aws.expressions import condition_parameters, query_parameters, update_parameters
from snavio.aws.memory.conditions import changed, holds
from snavio.aws.values import (
    Absent,
    AllOf,
    AnyOf,
    AtLeast,
    AtMost,
    Below,
    Change,
    Differs,
    Equals,
    Exists,
    SortRange,
)

# Few names and values, so that they often meet; some names are reserved words, one is a path if read carelessly.
names = st.sampled_from(["a", "size", "status", "with.dot", "#odd"])
numbers = st.one_of(st.integers(-2, 2), st.sampled_from([0.5, -1.5]))
texts = st.sampled_from(["", "a", "b", "ü", "1"])
scalars = st.one_of(numbers, texts, st.booleans())
values = st.one_of(scalars, st.none(), st.sampled_from([b"a", [1], {"x": 1}]))
items = st.dictionaries(names, values)
ordered = st.builds(
    lambda kind, name, value: kind(name, value),
    st.sampled_from([Below, AtMost, AtLeast]),
    names,
    st.one_of(numbers, texts),
)
compared = st.builds(
    lambda kind, name, value: kind(name, value), st.sampled_from([Equals, Differs]), names, scalars
)
presence = st.builds(lambda kind, name: kind(name), st.sampled_from([Exists, Absent]), names)
conditions = st.recursive(
    st.one_of(ordered, compared, presence),
    lambda inner: st.builds(
        lambda kind, operands: kind(tuple(operands)),
        st.sampled_from([AllOf, AnyOf]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@st.composite
def changes(draw):
    shuffled = draw(st.permutations(["a", "size", "status", "with.dot", "#odd"]))
    first, second = sorted((draw(st.integers(0, 5)), draw(st.integers(0, 5))))
    return Change(
        assign={name: draw(values) for name in shuffled[:first]},
        add={name: draw(st.integers(-3, 3)) for name in shuffled[first:second]},
        remove=tuple(shuffled[second:]),
    )


@given(conditions, items)
def test_a_condition_means_the_same_to_dynamodb_and_to_the_fake(condition, item):
    parameters = condition_parameters(condition)
    verdict = ministack._evaluate_condition(
        parameters["ConditionExpression"],
        encode_item(item),
        parameters.get("ExpressionAttributeValues", {}),
        parameters["ExpressionAttributeNames"],
    )
    assert verdict == holds(condition, item)


@given(changes(), items, conditions)
def test_a_change_means_the_same_to_dynamodb_and_to_the_fake(change, item, condition):
    item = {name: value for name, value in item.items() if name not in change.add or type(value) is int}
    parameters = update_parameters(change, condition)
    names_, values_ = parameters["ExpressionAttributeNames"], parameters.get("ExpressionAttributeValues", {})

    after, _ = ministack._apply_update_expression(
        encode_item({"pk": "k", **item}), parameters.get("UpdateExpression", ""), values_, names_
    )
    verdict = ministack._evaluate_condition(
        parameters["ConditionExpression"], encode_item(item), values_, names_
    )

    assert decode_item(after) == changed({"pk": "k", **item}, {"pk": "k"}, change)
    assert verdict == holds(condition, item)


@given(conditions)
def test_an_expression_is_one_dynamodb_accepts(condition):
    parameters = condition_parameters(condition)
    expression = parameters["ConditionExpression"]
    assert ministack._condition_syntax_error(expression, "ConditionExpression") is None
    # DynamoDB refuses names and values an expression does not use, and uses none it was not given.
    words = set(expression.replace("(", " ").replace(")", " ").replace(",", " ").split())
    assert {word for word in words if word[0] == "#"} == set(parameters["ExpressionAttributeNames"])
    assert {word for word in words if word[0] == ":"} == set(parameters.get("ExpressionAttributeValues", {}))


def test_values_that_are_equal_in_python_are_not_mixed_up_by_the_cache():
    kinds = [
        condition_parameters(Equals("a", value))["ExpressionAttributeValues"][":v0"]
        for value in (1, True, 1.5)
    ]
    assert kinds == [{"N": "1"}, {"BOOL": True}, {"N": "1.5"}]


def test_a_shape_is_rendered_once_whatever_its_values():
    expressions._render.cache_clear()
    for number in range(5):
        update_parameters(
            Change(add={"issued": number}), AllOf((AtLeast("issued", number), AtMost("issued", 9)))
        )
    assert expressions._render.cache_info().misses == 1


def test_without_a_condition_or_a_change_nothing_is_asked():
    assert condition_parameters(None) == {}
    assert update_parameters(Change()) == {}


@pytest.mark.parametrize(
    ("sort", "expression"),
    [
        (None, "#n0 = :v0"),
        (SortRange("sk"), "#n0 = :v0"),
        (SortRange("sk", low=1, high=2), "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"),
        (SortRange("sk", low=0), "#n0 = :v0 AND #n1 >= :v1"),
        (SortRange("sk", high=0), "#n0 = :v0 AND #n1 <= :v1"),
        (SortRange("sk", prefix=""), "#n0 = :v0 AND begins_with(#n1, :v1)"),
    ],
)
def test_a_key_range_is_the_expression_dynamodb_reads(sort, expression):
    assert query_parameters(("pk", "a"), sort)["KeyConditionExpression"] == expression
