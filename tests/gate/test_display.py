import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.characters import cells, is_clean, is_visible, turns
from stringd.gate.display import (
    Span,
    Style,
    clipped,
    command_lines,
    first_lines,
    labelled,
    line,
    paint,
    pipeline_text,
    quote,
    render,
    width_of,
    wrap_exact,
)
from tests.requirements import proves

words = st.text(st.characters(exclude_categories=["Cs"]).filter(is_clean), max_size=8)
shellish = st.text(st.sampled_from("ab '\"|;&$`\\*<>()#~\t=\u00a0ш"), max_size=6)
pipelines = st.lists(st.lists(words | shellish, min_size=1, max_size=4), min_size=1, max_size=3)


@given(st.text())
def test_rendered_text_holds_visible_characters_only(text: str) -> None:
    assert all(map(is_visible, render(text)))


@given(st.binary())
def test_rendered_output_holds_visible_characters_only(data: bytes) -> None:
    for shown in first_lines(data, 3, 40):
        assert all(map(is_visible, shown))
        assert sum(map(cells, shown)) <= 40


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_printable_ascii_is_shown_as_it_is(text: str) -> None:
    assert render(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\tb", "a\\x09b"),
        ("a\u00a0b", "a\\xa0b"),
        ("a\u2003b", "a\\u{2003}b"),
        ("\u202erm", "\\u{202e}rm"),
        ("\U000e0041", "\\u{e0041}"),
        ("\udc9b", "\\x9b"),
        ("é", "é"),
    ],
)
def test_what_cannot_be_seen_is_shown_by_number(text: str, shown: str) -> None:
    assert render(text) == shown


def unquote(text: str) -> list[list[str]]:
    """Read a shown pipeline back, by the rules a reader is told; fails on anything ambiguous."""
    stages: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        word, at, bare = _read_word(text, at)
        if bare and word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
        assert at == len(text) or text[at] == " "
        at += 1
    return stages


def _read_word(text: str, at: int) -> tuple[str, int, bool]:
    word, bare = "", True
    while at < len(text) and text[at] != " ":
        if text.startswith("$'", at):
            piece, at = _read_escaped(text, at + 2)
            word, bare = word + piece, False
        elif text[at] == "'":
            end = text.index("'", at + 1)
            word, at, bare = word + text[at + 1 : end], end + 1, False
        elif text[at] == "\\":
            word, at, bare = word + text[at + 1], at + 2, False
        else:
            word, at = word + text[at], at + 1
    return word, at, bare


def _read_escaped(text: str, at: int) -> tuple[str, int]:
    word = ""
    while text[at] != "'":
        if text[at] != "\\":
            word, at = word + text[at], at + 1
        elif text[at + 1] == "x":
            word, at = word + chr(int(text[at + 2 : at + 4], 16)), at + 4
        elif text[at + 1] == "u":
            end = text.index("}", at)
            word, at = word + chr(int(text[at + 3 : end], 16)), end + 1
        else:
            word, at = word + text[at + 1], at + 2
    return word, at + 1


@given(pipelines)
@proves("GATE-ASK-06")
def test_a_shown_pipeline_can_be_read_back_exactly(pipeline: list[list[str]]) -> None:
    """So rendering is injective: no two pipelines share a picture."""
    assert unquote(pipeline_text(pipeline)) == pipeline


@proves("GATE-ASK-06")
@given(st.lists(words, min_size=1, max_size=4))
def test_no_command_holds_letters_that_a_terminal_may_reorder(stage: list[str]) -> None:
    assert not any(turns(each) for each in pipeline_text([stage]))


@proves("GATE-ASK-06")
def test_arguments_between_letters_read_from_the_right_keep_their_order() -> None:
    shown = pipeline_text([["cp", "\u05d0", "1", "2", "\u05d1"]])
    assert shown == "cp $'\\u{05d0}' 1 2 $'\\u{05d1}'"
    assert pipeline_text([["echo", "\u00fc\u4e2d"]]) == "echo '\u00fc\u4e2d'"


@proves("GATE-ASK-06")
def test_a_quoted_pipe_and_a_pipe_look_different() -> None:
    assert pipeline_text([["echo", "|", "rm"]]) == "echo '|' rm"
    assert pipeline_text([["echo"], ["rm"]]) == "echo | rm"


@given(st.lists(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)), min_size=1))
def test_printable_words_are_quoted_as_the_standard_library_reads_them(stage: list[str]) -> None:
    assert shlex.split(" ".join(map(quote, stage))) == stage


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_shell_reads_the_quoting_as_it_is_meant() -> None:
    stage = [
        "a b",
        "it's",
        "$HOME",
        "`id`",
        "*",
        "~",
        "#",
        "\\",
        "a\tb",
        "'\t\\",
        "",
        "é",
        "-n",
        "!x",
    ]
    script = "printf '%s\\0' " + " ".join(map(quote, stage))
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == stage


def test_an_assignment_in_front_is_quoted() -> None:
    assert pipeline_text([["A=b", "c=d"]]) == "'A=b' c=d"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(10, 80))
def test_wrapped_text_joined_is_the_text_and_fits(text: str, width: int) -> None:
    shown = render(text)
    pieces = wrap_exact(shown, width)
    assert "".join(pieces) == shown
    assert all(sum(map(cells, piece)) <= width for piece in pieces)


@given(words, st.integers(20, 60))
def test_no_value_can_reach_the_left_edge_where_labels_stand(text: str, width: int) -> None:
    value = render(text * 20 + " Command: ls")
    lines = labelled("Reason:  ", value, width)
    assert all(spans[0].text.startswith(" " * 9) for spans in lines[1:])


def test_a_command_cut_between_words_reads_as_a_shell_reads_it() -> None:
    rows = paint(command_lines("$ ", ["echo", "one", "two", "three", "four"], 16), colour=False)
    assert rows == "$ echo one two \\\n  three four\n"
    done = subprocess.run(["sh", "-c", rows[2:]], capture_output=True, text=True, check=True)
    assert done.stdout == "one two three four\n"


def test_a_word_longer_than_a_row_marks_every_cut() -> None:
    lines = command_lines("Command: ", ["echo", "a" * 50], 30)
    assert [spans[-1].text for spans in lines[:-1]] == [" \\", "↩", "↩"]
    assert all(spans[0].text.startswith("       ┊ ") for spans in lines[2:])
    assert all(width_of("".join(span.text for span in spans)) <= 31 for spans in lines)


@given(st.lists(words, min_size=1, max_size=20), st.integers(30, 90))
def test_a_wrapped_command_loses_nothing(stage: list[str], width: int) -> None:
    quoted = [quote(word) for word in stage]
    text = ""
    for spans in command_lines("Command: ", quoted, width):
        row, *ending = (span.text for span in spans)
        text += row[9:] + {" \\": " ", "↩": ""}.get("".join(ending), "")
    assert text == " ".join(quoted)


def test_a_long_field_says_how_much_is_missing() -> None:
    assert clipped("x" * 10, 4) == "xxxx… (6 more characters)"
    assert clipped("xxxx", 4) == "xxxx"


def test_colour_is_ours_alone_and_can_be_off() -> None:
    lines = [line("\x1b[1mbold\x1b[0m", Style.BOLD), (Span("plain"),)]
    assert paint(lines, colour=False) == "\\x1b[1mbold\\x1b[0m\nplain\n"
    assert paint(lines, colour=True) == "\x1b[1m\\x1b[1mbold\\x1b[0m\x1b[0m\nplain\n"


def test_text_that_mixes_scripts_is_flagged() -> None:
    assert clipped("pаypal", 128) == "pаypal [non-ASCII]"
