"""Conditions, changes and key ranges as the expressions DynamoDB reads.

Every function gives the parameters to merge into a request. An expression depends only on which attributes take part and
how, never on the values, so it is rendered once and kept; a call then only lists its values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from snavio.aws.attributes import encode
from snavio.aws.errors import Permanent
from snavio.aws.values import AllOf, AnyOf, AtLeast, AtMost, Below, Differs, Equals, Exists

if TYPE_CHECKING:
    from snavio.aws.values import Change, Condition, SortRange, Value

Parameters: TypeAlias = dict[str, Any]
# What a condition asks without its values: (operator, attribute) or (connective, operands).
Shape: TypeAlias = "tuple[str, str | tuple[Shape, ...]]"

_PLACEHOLDERS = tuple(f":v{index}" for index in range(512))


def condition_parameters(condition: Condition | None) -> Parameters:
    """The parameters that make a write conditional; none without a condition."""
    if condition is None:
        return {}
    values: list[Value] = []
    _, expression, names = _render((), (), (), _shape(condition, values))
    return _parameters(names, values, ConditionExpression=expression)


def update_parameters(change: Change, condition: Condition | None = None) -> Parameters:
    """The parameters of an update in place, conditional when a condition is given."""
    named = {*change.assign, *change.add, *change.remove}
    if len(named) != len(change.assign) + len(change.add) + len(change.remove):
        raise Permanent("A change names an attribute twice.", code="ValidationException")
    values: list[Value] = [*change.assign.values(), *change.add.values()]
    shape = None if condition is None else _shape(condition, values)
    update, expression, names = _render(tuple(change.assign), tuple(change.add), change.remove, shape)
    return _parameters(names, values, UpdateExpression=update, ConditionExpression=expression)


def query_parameters(partition: tuple[str, str | int], sort: SortRange | None) -> Parameters:
    """The parameters that pick one partition and a range within it."""
    name, value = partition
    if sort is None or (sort.low is None and sort.high is None and sort.prefix is None):
        return _parameters({"#n0": name}, [value], KeyConditionExpression="#n0 = :v0")
    if sort.prefix is not None:
        if sort.low is not None or sort.high is not None:
            raise Permanent("A sort range has a prefix or bounds, not both.", code="ValidationException")
        values, within = [value, sort.prefix], "begins_with(#n1, :v1)"
    elif sort.low is None:
        values, within = [value, sort.high], "#n1 <= :v1"
    elif sort.high is None:
        values, within = [value, sort.low], "#n1 >= :v1"
    else:
        values, within = [value, sort.low, sort.high], "#n1 BETWEEN :v1 AND :v2"
    return _parameters(
        {"#n0": name, "#n1": sort.name}, values, KeyConditionExpression=f"#n0 = :v0 AND {within}"
    )


def _parameters(names: dict[str, str], values: list[Any], **expressions: str) -> Parameters:
    parameters: Parameters = {name: expression for name, expression in expressions.items() if expression}
    # DynamoDB refuses empty maps of names or values.
    if names:
        parameters["ExpressionAttributeNames"] = names
    if values:
        parameters["ExpressionAttributeValues"] = {
            placeholder: encode(value) for placeholder, value in zip(_PLACEHOLDERS, values, strict=False)
        }
    return parameters


def _shape(condition: Condition, values: list[Value]) -> Shape:
    """Append the condition's values in the order rendering numbers them, and return the rest."""
    if isinstance(condition, AllOf | AnyOf):
        connective = "AND" if isinstance(condition, AllOf) else "OR"
        return connective, tuple(_shape(operand, values) for operand in condition.conditions)
    if isinstance(condition, Below | AtMost | AtLeast | Equals | Differs):
        values.append(condition.value)
        return _OPERATORS[type(condition)], condition.name
    return ("attribute_exists" if isinstance(condition, Exists) else "attribute_not_exists"), condition.name


_OPERATORS: dict[type, str] = {Below: "<", AtMost: "<=", AtLeast: ">=", Equals: "=", Differs: "<>"}


@lru_cache(maxsize=1024)
def _render(
    assign: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...], condition: Shape | None
) -> tuple[str, str, dict[str, str]]:
    """The update expression, the condition expression and the names behind their placeholders."""
    aliases: dict[str, str] = {}
    numbers = iter(_PLACEHOLDERS)

    def alias(name: str) -> str:
        # Every name is aliased: that spares a list of DynamoDB's 573 reserved words.
        return aliases.setdefault(name, f"#n{len(aliases)}")

    def render(shape: Shape) -> str:
        operator, operand = shape
        if isinstance(operand, tuple):
            if not operand:
                # DynamoDB has no constants: all of nothing holds, any of nothing does not.
                anything = alias("snavio")
                joined = "OR" if operator == "AND" else "AND"
                return f"(attribute_exists({anything}) {joined} attribute_not_exists({anything}))"
            if len(operand) == 1:
                # DynamoDB refuses redundant parentheses.
                return render(operand[0])
            return "(" + f" {operator} ".join(render(each) for each in operand) + ")"
        name = alias(operand)
        if operator.startswith("attribute"):
            return f"{operator}({name})"
        value = next(numbers)
        if operator == "<>":
            return f"(attribute_not_exists({name}) OR {name} <> {value})"
        return f"{name} {operator} {value}"

    clauses: list[str] = []
    if assign:
        clauses.append("SET " + ", ".join(f"{alias(name)} = {next(numbers)}" for name in assign))
    if add:
        clauses.append("ADD " + ", ".join(f"{alias(name)} {next(numbers)}" for name in add))
    if remove:
        clauses.append("REMOVE " + ", ".join(map(alias, remove)))
    expression = "" if condition is None else render(condition)
    return " ".join(clauses), expression, {placeholder: name for name, placeholder in aliases.items()}
