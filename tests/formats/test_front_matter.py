"""Headers of texts: where they are, and that one bad line costs one value."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.formats.front_matter import header_bounds, read_header
from stringd.formats.places import SourceSyntaxError, Value
from stringd.formats.yaml12 import parse_loosely


@pytest.mark.parametrize(
    ("source", "bounds"),
    [
        ("---\na: b\n---\nbody", (4, 9, 13)),
        ("\ufeff---\na: b\n--- \nbody", (5, 10, 15)),
        ("---\n---\n", (4, 4, 8)),
        ("---\na: b\n---x\n---\n", (4, 14, 18)),
        ("no header", (0, 0, 0)),
        ("\ufeffno header", (1, 1, 1)),
        ("---\nnever: closed", (0, 0, 0)),
        ("----\na: b\n---\n", (0, 0, 0)),
    ],
)
def test_a_header_is_between_two_rules_at_the_very_top(
    source: str, bounds: tuple[int, int, int]
) -> None:
    assert header_bounds(source) == bounds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: word\n", {"a": "word"}),
        ("a: 1\r\nb: yes\r\n", {"a": "1", "b": "yes"}),
        ('a: "x: y"\n', {"a": "x: y"}),
        ("a: x: y\n", {"a": "x: y"}),
        ("a: >-\n  two\n  lines\n", {"a": "two lines"}),
        ("a: [x\nb: y\n", {"a": "[x", "b": "y"}),
        ("- x\n", {}),
        ("\n \n", {}),
    ],
)
def test_a_header_is_read_leniently(text: str, value: dict[str, Value]) -> None:
    assert read_header(text, str) == value


def test_the_caller_says_what_a_plain_scalar_means() -> None:
    assert read_header("a: 1\nb: '1'\nc: [1]\n", int) == {"a": 1, "b": "1", "c": ["1"]}


@given(st.text(alphabet="ab:-[]{}'\"|>#&*! \t\n\\"))
def test_no_header_is_an_exception(text: str) -> None:
    assert isinstance(read_header(text, str), dict)


def test_a_header_of_bare_words_needs_no_parser() -> None:
    code = (
        "import sys; from stringd.formats.front_matter import read_header; "
        "read_header('title: A page\\nkind: app\\n', str); sys.exit('yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_loose_reading_keeps_aliases_and_items_as_text() -> None:
    assert parse_loosely("a: &x [1, ~]\nb: *x\na: 2", int) == {"a": 2, "b": "*x"}
    with pytest.raises(SourceSyntaxError):
        parse_loosely("a: [", str)
