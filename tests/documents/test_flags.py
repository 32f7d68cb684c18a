"""One grammar of arguments for commands and actions."""

import pytest

from stringd.documents import Flags, parse_flags, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("a'b c'd", ["ab cd"]),
        ('"it\'s"', ["it's"]),
        ("'open to the end", ["open to the end"]),
        ("a '' b", ["a", "b"]),
        ("two\nlines x", ["two\nlines", "x"]),
        ('"two\nlines"', ["two\nlines"]),
        ("back\\ slash", ["back\\", "slash"]),
        (r'"a \"q\" b" c', ['a "q" b', "c"]),
        ('"a\\\\b" "c\\d" "\\', ["a\\b", "c\\d", "\\"]),
        ('["x y", "z"] w', ['["x y", "z"]', "w"]),
        ('--l=["x"] {"a": 1}', ['--l=["x"]', '{"a": 1}']),
        ('["x" y', ["[x", "y"]),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "values", "bare", "positional"),
    [
        ("--k v", {"k": "v"}, [], ()),
        ("--k=v w", {"k": "v"}, [], ("w",)),
        ("--k=", {"k": ""}, [], ()),
        ("--flag", {"flag": "true"}, ["flag"], ()),
        ("--a --b c", {"a": "true", "b": "c"}, ["a"], ()),
        ("--n -5", {"n": "-5"}, [], ()),
        ("--n -10", {"n": "-10"}, [], ()),
        ("-q x -z y", {"query": "x", "z": "y"}, [], ()),
        ("a --k v b", {"k": "v"}, [], ("a", "b")),
        ("--k 1 --k 2", {"k": "2"}, [], ()),
        ("a -- --b -c", {}, [], ("a", "--b", "-c")),
        ("--all p.md", {"all": "true"}, ["all"], ("p.md",)),
        ('--k "--limit 50" "-v"', {"k": "--limit 50"}, [], ("-v",)),
        ('--k ""', {"k": ""}, [], ()),
        ('"--" --k v', {"k": "v"}, [], ("--",)),
    ],
)
def test_flags(
    text: str, values: dict[str, str], bare: list[str], positional: tuple[str, ...]
) -> None:
    parsed = parse_flags(text, aliases={"q": "query"}, switches=["all"])
    assert parsed == Flags(values, frozenset(bare), positional)


@pytest.mark.parametrize("text", ["--help", "-h", "a --k v -h", "--help x"])
def test_help_may_stand_anywhere(text: str) -> None:
    assert parse_flags(text).help


def test_help_after_the_options_is_a_value() -> None:
    assert not parse_flags("-- --help").help


def test_a_long_line_of_brackets_is_split_in_one_pass() -> None:
    assert len(tokens("[ " * 200_000)) == 200_000


def test_quoted_help_is_a_value() -> None:
    assert not parse_flags('"--help"').help
