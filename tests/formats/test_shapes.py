"""Shapes name every problem of a value, and blame the branch its author meant."""

import pytest

from stringd.formats.shapes import (
    Either,
    Entries,
    Fields,
    Flag,
    Issue,
    Items,
    Literal,
    Number,
    OneOf,
    Shape,
    TextShape,
    dotted,
    kind,
)


@pytest.mark.parametrize(
    ("shape", "value", "problem"),
    [
        (TextShape(), 5, "Expected string, received number"),
        (TextShape(filled=True), "", "String must contain at least 1 character(s)"),
        (Flag(), "yes", "Expected boolean, received string"),
        (Number(), True, "Expected number, received boolean"),
        (Number(whole=True), 1.5, "Expected integer, received float"),
        (Number(above=0), 0, "Number must be greater than 0"),
        (Number(at_least=1), 0, "Number must be greater than or equal to 1"),
        (Literal("user"), "x", 'Invalid literal value, expected "user"'),
        (OneOf(("a", "b")), "c", "Invalid enum value. Expected 'a' | 'b', received 'c'"),
        (OneOf(("a", "b")), 1, "Expected 'a' | 'b', received number"),
        (Items(TextShape()), {}, "Expected array, received object"),
        (Items(TextShape(), filled=True), [], "Array must contain at least 1 element(s)"),
        (Entries(TextShape()), [], "Expected object, received array"),
        (Fields({"a": TextShape()}), {}, "Required"),
        (Fields({}), {"x": 1, "y": 2}, "Unrecognized key(s) in object: 'x', 'y'"),
        (Either((TextShape(), Number())), None, "Invalid input"),
    ],
)
def test_each_problem_has_its_words(shape: Shape, value: object, problem: str) -> None:
    assert [issue.problem for issue in shape.check(value)] == [problem]


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Number(whole=True), 2.0),
        (Number(whole=True), 10**400),
        (Fields({}, {"a": TextShape()}, strict=False), {"b": 1}),
        (Flag(), False),
    ],
)
def test_good_values_have_no_issues(shape: Shape, value: object) -> None:
    assert shape.check(value) == []


def test_issues_carry_their_path() -> None:
    shape = Fields({"steps": Items(Fields({"agent": TextShape()}))})
    [issue] = shape.check({"steps": [{"agent": "a"}, {"agent": 5}]})
    assert dotted(issue.path) == "steps.1.agent"


def test_a_choice_reports_the_branch_that_only_breaks_a_bound() -> None:
    shape = Either((Fields({"type": Literal("a")}), Fields({"name": TextShape()})))
    assert shape.check({"name": "x", "extra": 1}) == [
        Issue((), "Unrecognized key(s) in object: 'extra'", fatal=False, about=("extra",))
    ]


def test_a_choice_that_fits_nowhere_says_why_the_meant_branch_does_not() -> None:
    shape = Either((Literal("x"), Fields({"model": TextShape()})), lambda _value: 1)
    [issue] = shape.check({"model": 5})
    assert issue.problem == "Invalid input"
    assert [leaf.problem for leaf in issue.leaves()] == ["Expected string, received number"]


def test_kinds_are_the_json_names() -> None:
    values: list[object] = [None, True, 1, 1.5, "", [], {}]
    assert [kind(value) for value in values] == [
        "null",
        "boolean",
        "number",
        "number",
        "string",
        "array",
        "object",
    ]
