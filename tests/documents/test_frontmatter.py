"""Frontmatter: YAML as authors write it, never an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.documents import EnvVariable, parse
from stringd.documents.frontmatter import Value


def header(text: str) -> dict[str, Value]:
    return parse(f"---\n{text}\n---\nbody").frontmatter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k: text", "text"),
        ("k: 'single'", "single"),
        ('k: "double: colon"', "double: colon"),
        ("k: true", True),
        ("k: false", False),
        ("k: 12", 12),
        ("k: 0.1", 0.1),
        ('k: "0.1"', "0.1"),
        ("k: yes", "yes"),
        ("k: 2024-01-01", "2024-01-01"),
        ("k: 12:30", "12:30"),
        ('k: [a, "b", 3]', ["a", "b", "3"]),
        ("k:\n  - x\n  - y", ["x", "y"]),
        ('k:\n  - NAME: "text"\n    default: x', [{"NAME": "text", "default": "x"}]),
        ('k:\n  - NAME: "text"\n      default: x', [{"NAME": "text", "default": "x"}]),
        ("k: |\n  two\n  lines", "two\nlines\n"),
        ("k: a: b", "a: b"),
        ("k: @handle", "@handle"),
        ("k: 99999999999999999999999999", "99999999999999999999999999"),
    ],
)
def test_values_mean_what_they_look_like(text: str, expected: Value) -> None:
    assert header(text)["k"] == expected


def test_on_is_a_key_like_any_other() -> None:
    assert header("on: x\nyes: y") == {"on": "x", "yes": "y"}


def test_one_bad_line_costs_one_value() -> None:
    assert header("title: Good\nbroken: [a\nname: also good") == {
        "title": "Good",
        "broken": "[a",
        "name": "also good",
    }


def test_aliases_are_text_so_they_cannot_multiply() -> None:
    bomb = "a: &a [x, x]\n" + "\n".join(f"b{n}: [*a, *a]" for n in range(5))
    assert header(bomb)["b4"] == ["*a", "*a"]


@pytest.mark.parametrize(
    "source",
    [
        "no header",
        "---\nnever: closed",
        "----\na: b\n---\n",
        " ---\na: b\n---\n",
        "---\n- list\n---\n",
    ],
)
def test_a_text_without_a_header_has_an_empty_one(source: str) -> None:
    assert parse(source).frontmatter == {}


def test_a_header_may_use_crlf() -> None:
    assert parse("---\r\ntitle: T\r\nn: 1\r\n---\r\nbody").frontmatter == {"title": "T", "n": 1}


def test_deep_nesting_is_refused_quickly() -> None:
    assert isinstance(header("k: " + "[" * 50_000)["k"], str)


def test_the_fields_the_runtime_reads() -> None:
    document = parse(
        "---\ntitle: T\ndefault: go\nrequires: [A, $B]\nversion: 0.1\n"
        'env:\n  - TOKEN: "the token"\n    default: x\n'
        "  - name: KEY\n    description: the key\n---\n"
    )
    assert (document.title, document.default_action) == ("T", "go")
    assert document.requires == ("A", "B")
    assert document.frontmatter["version"] == 0.1
    assert document.env == (EnvVariable("TOKEN", "the token", "x"), EnvVariable("KEY", "the key"))


def test_a_title_that_is_no_text_is_no_title() -> None:
    assert parse("---\ntitle: 5\n---\n").title is None


@given(st.lists(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,5}: [A-Za-z][A-Za-z0-9 _./-]{0,9}\\Z")))
def test_a_header_of_bare_words_means_what_yaml_says(lines: list[str]) -> None:
    plain = "\n".join(lines)
    assert header(plain) == header(f"{plain}\n# a comment sends it to the parser")


def test_bare_words_that_are_values_are_no_text() -> None:
    assert header("a: true\nb: null\nc: yes\na: e5") == {"a": "e5", "b": None, "c": "yes"}
