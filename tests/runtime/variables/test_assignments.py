"""The text of `/set`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runtime.errors import CommandError
from stringd.runtime.variables.assignments import Assignment, parse_assignments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{x} = "a b"', Assignment("x", "a b", False)),
        ("{x}=1", Assignment("x", "1", False)),
        ("x = 'a'", Assignment("x", "a", False)),
        ("$KEY = secret", Assignment("KEY", "secret", True)),
        ("{x} = a = b", Assignment("x", "a = b", False)),
        ('{x} = "', Assignment("x", '"', False)),
        ("{x} =", Assignment("x", "", False)),
        ('{x} = "it\'s"', Assignment("x", "it's", False)),
    ],
)
def test_one_line_is_one_assignment(text: str, expected: Assignment) -> None:
    assert parse_assignments(text, None) == [expected]


def test_lines_of_the_body_and_fenced_values_are_assignments_too() -> None:
    body = "$B = 2\n\n```{text}\none\n\n```not the end\n```\n````$KEY\n```\n````\nc = 3\n"
    assert parse_assignments("{a} = 1", body) == [
        Assignment("a", "1", False),
        Assignment("B", "2", True),
        Assignment("c", "3", False),
        Assignment("text", "one\n\n```not the end", False, fenced=True),
        Assignment("KEY", "```", True, fenced=True),
    ]


def test_lines_of_a_fenced_value_are_kept_exactly() -> None:
    value = "one\r\n\ttwo \x0c\u2028three"
    assert parse_assignments("", f"```{{text}}\n{value}\n```\n") == [
        Assignment("text", value, False, fenced=True)
    ]


@pytest.mark.parametrize("text", ["x", "= 1", "{x = 1", "{1x} = 1", "a b = 1", "{ü} = 1"])
def test_what_is_no_assignment_is_quoted(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_assignments(text, None)
    assert refused.value.code == "INVALID_PAYLOAD"
    assert refused.value.message.startswith(f"Invalid assignment: {text}\nUsage: /set ")


def test_an_unclosed_fence_is_refused() -> None:
    with pytest.raises(CommandError, match=r"Invalid assignment: ```\{x\}"):
        parse_assignments("", "```{x}\nnever closed\n")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029")))
def test_any_quoted_value_is_kept(value: str) -> None:
    (item,) = parse_assignments(f'{{x}} = "{value}"', None)
    assert item.value == value
