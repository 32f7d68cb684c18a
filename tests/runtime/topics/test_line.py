"""Command lines, taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runtime.errors import CommandError
from stringd.runtime.topics.line import CommandLine, parse_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/info", CommandLine("info", "info", "", None)),
        ("  /Open  A  B  ", CommandLine("open", "Open", "A  B", None)),
        ("//open x", CommandLine("open", "open", "x", None)),
        ("/write a.md\n\n text \n", CommandLine("write", "write", "a.md", "\n text \n")),
        ("/write a.md\n", CommandLine("write", "write", "a.md", "")),
        ("/act.Search --q x", CommandLine("act.search", "act.Search", "--q x", None)),
        ("/set\t{x} = 1", CommandLine("set", "set", "{x} = 1", None)),
    ],
)
def test_a_command_is_a_name_an_argument_and_a_body(text: str, line: CommandLine) -> None:
    assert parse_line(text) == line


@pytest.mark.parametrize("text", ["info", "/", "/ info", "//", "", "\n/", "x /info"])
def test_what_does_not_start_with_a_slash_is_refused(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_line(text)
    assert refused.value.code == "COMMAND_UNSUPPORTED"


@given(st.text("ab /\n\t", max_size=30))
def test_the_body_is_never_changed(body: str) -> None:
    assert parse_line(f"/write x\n{body}").body == body
