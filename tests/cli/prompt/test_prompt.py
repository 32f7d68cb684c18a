"""The prompt of `string <topic>` on a real terminal of 80 columns and 24 rows."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.tmux import Pane, pane

STRING = [sys.executable, "-c", "import sys; from stringd.cli.string import main; sys.exit(main())"]
NOTES = "# Notes\n\nText\n\n## Plan\n\nFirst.\n\n## Risks\n\nSecond.\n"


@pytest.fixture
def person(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Somebody with a home and a project, in which the terminal is."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text(NOTES)
    (work / "two words.md").write_text("# Two\n")
    return env | {"HOME": str(tmp_path), "PWD": str(work)}


def session(person: dict[str, str], topic: str, name: str = "one") -> AbstractContextManager[Pane]:
    folder = Path(person["HOME"], name)
    folder.mkdir()
    inside = ["sh", "-c", 'cd "$0" && exec "$@"', person["PWD"], *STRING, topic]
    return pane(folder, inside, person)


@pytest.fixture
def files(person: dict[str, str]) -> Iterator[Pane]:
    with session(person, "file:main") as terminal:
        terminal.until("[file:main] >")
        yield terminal


@pytest.fixture
def shell(person: dict[str, str]) -> Iterator[Pane]:
    with session(person, "bash:dev") as terminal:
        terminal.until("[bash:dev] >")
        yield terminal


def test_tab_completes_commands_files_and_blocks(files: Pane) -> None:
    files.type("/op\t")
    files.until("> /open")
    files.type(" ./no\t")
    files.until("> /open ./notes.md")
    files.press("Enter")
    files.until("Second.", "</𝒞>\n[file:main] >")
    files.type("/open #\t")
    files.until("plan   Plan", "risks  Risks")
    files.type("ri\t")
    files.until("> /open #risks")
    files.press("Enter")
    files.until("Opened", "notes.md#risks")


def test_a_file_with_a_blank_in_its_name_is_completed_as_one_word(files: Pane) -> None:
    files.type("/open ./tw\t")
    files.until("> /open './two words.md'")
    files.press("Enter")
    files.until("# Two")


def test_a_page_s_actions_and_their_inputs_are_completed(
    person: dict[str, str], files: Pane
) -> None:
    Path(person["PWD"], "act.md").write_text(
        "# Act\n\n```act.greet\nCLI echo {loudness}\n  loudness: string (quiet|loud)\n```\n"
    )
    files.type("/open ./act.md\r")
    files.until("</𝒞>\n[file:main] >")
    files.type("/act.\t")
    files.until("> /act.greet")
    files.type(" \t")
    files.until("> /act.greet --loudness")
    files.type(" \t")
    files.until("quiet", "loud")
    files.type("q\t")
    files.until("> /act.greet --loudness quiet")


def test_earlier_lines_come_back_also_in_the_next_session(person: dict[str, str]) -> None:
    with session(person, "file:main") as terminal:
        terminal.until("[file:main] >")
        terminal.type("/open ./notes.md\r")
        terminal.until("</𝒞>\n[file:main] >")
        terminal.type(" /info\r")
        terminal.until("Session info", "history:   0 entries\n</𝒞>\n[file:main] >")
    with session(person, "file:other", "two") as terminal:
        terminal.until("[file:other] >")
        terminal.press("Up")
        terminal.until("[file:other] > /open ./notes.md")
    kept = Path(person["HOME"], ".string", "history", "commands.jsonl")
    assert kept.read_text() == '"/open ./notes.md"\n'
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_body_of_several_lines_is_typed_below_its_command(
    person: dict[str, str], files: Pane
) -> None:
    files.type("/write ./new.md\r")
    files.until("Alt-Enter or Ctrl-D sends")
    files.type("# New\r\rA line\r")
    files.press("C-d")
    shown = files.until("Written: ./new.md")
    assert "Alt-Enter" not in shown
    assert Path(person["PWD"], "new.md").read_text().rstrip() == "# New\n\nA line"


def test_pasted_lines_are_one_text_until_they_are_sent(person: dict[str, str], files: Pane) -> None:
    files.tmux("set-buffer", "/write ./pasted.md\none\ntwo")
    files.tmux("paste-buffer", "-p")
    files.until("… two", "Alt-Enter or Ctrl-D sends")
    files.press("M-Enter")
    files.until("Written: ./pasted.md")
    assert Path(person["PWD"], "pasted.md").read_text().rstrip() == "one\ntwo"


def test_ctrl_c_gives_up_what_was_typed_and_on_an_empty_line_the_session(files: Pane) -> None:
    files.type("/write ./never.md\rbody")
    files.until("… body")
    files.press("C-c")
    files.until("… body\n[file:main] >")
    files.press("C-c")
    files.until("Bye.")


def test_ctrl_c_reaches_the_command_that_a_shell_topic_runs(shell: Pane, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    shell.type(f"echo > {begun}; sleep 1000\r")
    assert begun.read_text() == "\n"
    shell.press("C-c")
    shown = shell.until("ERROR(EXIT_130)", "</𝒞>\n[bash:dev] >")
    assert "\n^C\n<𝒞=string:bash:dev>\n" in shown


def test_files_are_completed_in_a_shell_topic_before_its_first_command(shell: Pane) -> None:
    shell.type("cat no\t")
    shell.until("> cat notes.md")


def test_a_long_line_wraps_and_its_letters_vanish_when_they_are_deleted(shell: Pane) -> None:
    wide = "\N{CJK UNIFIED IDEOGRAPH-65E5}" * 50
    shell.type(f"echo {wide}x")
    shown = shell.until(f"{wide[0]}x")
    assert "…" not in shown
    shell.press("C-u")
    shell.type("echo done")
    assert shell.until("> echo done") == "[bash:dev] > echo done"


def test_a_smaller_window_shows_the_same_line(shell: Pane) -> None:
    shell.type("echo " + "a" * 60 + "b")
    shell.until("ab")
    shell.tmux("resize-window", "-x", "40", "-y", "10")
    shell.type("c")
    shown = shell.until("abc")
    assert shown.replace("\n", "").endswith("> echo " + "a" * 60 + "bc")


def test_text_that_would_move_the_cursor_is_shown_as_text(
    person: dict[str, str], files: Pane
) -> None:
    Path(person["PWD"], "evil\x1b[2Jname.md").write_text("# Evil\n")
    Path(person["PWD"], "evening.md").write_text("# Evening\n")
    files.type("/open ./ev\t")
    files.until("> /open ./evening.md")


def test_without_a_home_to_write_to_the_session_has_no_memory(person: dict[str, str]) -> None:
    # A file where the directory would be: root could write to a read-only one.
    Path(person["HOME"], ".string").write_text("")
    with session(person, "file:main") as terminal:
        terminal.until("[file:main] >")
        terminal.type("/set {x} = 1\r")
        shown = terminal.until('{x} = "1"', "</𝒞>\n[file:main] >")
        assert "Error" not in shown
        terminal.press("Up")
        terminal.until("> /set {x} = 1")
