"""What a line can continue with, without a terminal or a daemon."""

from collections.abc import Iterable

import pytest

from stringd.cli.prompt.suggest import FieldWords, TopicWords, suggestions, topic_words

PAGE = TopicWords(
    commands=(("/open", "Open a page"), ("/outline", "Headings"), ("/set", "Remember")),
    actions={
        "greet": (FieldWords("name", "whom", ()), FieldWords("tone", "", ("dry", "warm tea")))
    },
    blocks=(("plan", "Plan"), ("risks", "Risks")),
    document="notes.md",
    places=("@home", "notes.md"),
)
SHELL = TopicWords(is_bash=True, commands=(("//info", ""), ("//key", "")))
NAMES = ("a b.md", "notes.md", "src/")


def offered(line: str, words: TopicWords = PAGE) -> list[str]:
    """Every line that one Tab could make of this one."""

    def files(typed: str) -> Iterable[str]:
        return [name for name in NAMES if name.startswith(typed)]

    found = suggestions(line, words, files)
    return [line[: len(line) - each.replaces] + each.text for each in found]


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("/o", ["/open", "/outline"]),
        ("/act", ["/act.greet"]),
        ("/open s", ["/open src/"]),
        ("/open @", ["/open @home"]),
        ("/open a", ["/open 'a b.md'"]),
        ("/open 'a ", ["/open 'a b.md'"]),
        ("/open #", ["/open #plan", "/open #risks"]),
        ("/open notes.md#r", ["/open notes.md#risks"]),
        ("/open other.md#r", []),
        ("/open -", []),
        ("/set s", []),
        ("/act.greet ", ["/act.greet --name", "/act.greet --tone"]),
        ("/act.greet --t", ["/act.greet --tone"]),
        ("/greet --tone ", ["/greet --tone dry", "/greet --tone 'warm tea'"]),
        ("", []),
    ],
)
def test_a_line_in_a_page(line: str, lines: list[str]) -> None:
    assert offered(line) == lines


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("//", ["//info", "//key"]),
        ("cat n", ["cat notes.md"]),
        ("cat a", ["cat 'a b.md'"]),
        ("//key s", []),
    ],
)
def test_a_line_in_a_shell_topic(line: str, lines: list[str]) -> None:
    assert offered(line, SHELL) == lines


def test_the_view_of_a_topic_says_what_can_be_named() -> None:
    view = {
        "type": "file",
        "home": "/h",
        "commands": [
            {"form": "/open <page>", "what": "Open"},
            {"form": "/act.<id>", "what": "Act"},
            {"form": "<text>", "what": "Run"},
        ],
        "document": {
            "shown": "notes.md",
            "shortcuts": {"home": "x"},
            "actions": [{"id": "go", "fields": [{"name": "to", "choices": ["x"]}]}],
            "outline": [{"id": "plan", "title": "Plan"}],
        },
        "history": [{"shown": "old.md"}],
    }
    words = topic_words(view)
    assert words.commands == (("/open", "Open"),)
    assert words.actions == {"go": (FieldWords("to", "", ("x",)),)}
    assert words.places == ("@home", "notes.md", "old.md")
    assert words.blocks == (("plan", "Plan"),)
    assert (
        topic_words({"type": "bash", "shell": {"alive": False, "directory": "/h"}}).directory == ""
    )
