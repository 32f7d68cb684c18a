"""The list of what waits, runs and has ended: its pages, and on a real terminal."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.arming import Arming
from stringd.gate.board import MAX_ENDED, MAX_KEPT, Board, BoardEntry, Phase
from stringd.gate.browse_view import OutputPages, OutputPlace, list_pages
from stringd.gate.capture import Capture
from stringd.gate.display import paint, render
from stringd.gate.keys import Key
from stringd.gate.pipeline import Outcome
from stringd.gate.question import Size
from stringd.gate.watch import Signal
from tests.gate.streams import fill
from tests.gate.support import QUESTION, RunningGate, answer, request, running_gate
from tests.gate.test_validate import valid, validated
from tests.requirements import proves


def entry(board: Board, *words: str) -> BoardEntry:
    return board.arrived(validated(valid(pipeline=(words,))), as_root=False)


def outcome(stdout: bytes, stderr: bytes = b"") -> Outcome:
    out, err = Capture(), Capture()
    fill(out, stdout)
    fill(err, stderr)
    return Outcome((0,), out, (err,), 1)


def test_what_runs_comes_before_what_waits_and_the_last_that_ended_first() -> None:
    board = Board()
    entries = [entry(board, name) for name in "abcd"]
    signal = Signal()
    board.started(entries[2], signal)
    board.ended(entries[0], "denied")
    board.ended(entries[3], "timeout")
    assert [each.command for each in board.entries()] == ["c", "b", "d", "a"]
    assert board.abort(entries[2])
    assert signal.is_set
    board.stopped(entries[2])
    assert not board.abort(entries[2])
    board.ended(entries[2], "exit 0")
    board.ended(entries[2], "a second time")
    assert entries[2].how == "exit 0"
    assert entries[2].phase is Phase.ENDED
    signal.close()


def test_the_list_and_the_output_it_keeps_are_bounded() -> None:
    board = Board()
    large = outcome(b"x" * (MAX_KEPT // 2 + 1))
    for _ in range(3):
        board.ended(entry(board, "a"), "exit 0", large)
    kept = [each.outcome is not None for each in board.entries()]
    assert kept == [True, False, False]
    assert "no longer kept" in board.entries()[1].how
    for _ in range(2 * MAX_ENDED):
        board.ended(entry(board, "b"), "exit 0")
    assert len(board.entries()) == MAX_ENDED


def test_a_page_of_the_list_has_a_digit_for_each() -> None:
    board = Board()
    for _ in range(25):
        entry(board, "a")
    assert [len(page) for page in list_pages(board.entries(), Size(80, 40))] == [9, 9, 7]
    assert list_pages([], Size(80, 24)) == [[]]


def read_all(view: OutputPages, size: Size) -> list[str]:
    """Every row of output, page by page."""
    rows: list[str] = []
    place: OutputPlace | None = OutputPlace()
    while place is not None:
        lines, place = view.page(place, size)
        assert len(lines) <= size.rows - 2
        rows += paint(lines[len(view.head) :], colour=False).splitlines()
    return rows


@given(st.binary(max_size=600) | st.text(max_size=300).map(str.encode), st.integers(12, 40))
def test_no_byte_of_the_output_is_left_out_or_shown_twice(data: bytes, columns: int) -> None:
    view = OutputPages((), (("stdout", data),) if data else ())
    rows = read_all(view, Size(columns, 10))
    shown = "".join(row.removeprefix("│ ") for row in rows if not row.startswith("== stdout"))
    text = data.decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    whole = [each.removesuffix("\r") for each in lines[:-1]] + lines[-1:]
    assert shown.replace(" ", "") == "".join(map(render, whole)).replace(" ", "")


def test_streams_are_headed_and_follow_each_other() -> None:
    board = Board()
    done = entry(board, "a")
    board.ended(done, "exit 0", outcome(b"one\ntwo\n", b"oops\n"))
    view = OutputPages.of(done, board, 80)
    assert read_all(view, Size(80, 24)) == [
        "== stdout ==",
        "│ one",
        "│ two",
        "== stderr ==",
        "│ oops",
    ]


@proves("GATE-ASK-04")
def test_keys_of_the_list_count_against_the_next_question() -> None:
    arming = Arming(0.4)
    arming.used_elsewhere(b"y", 1.0)
    arming.shown(1.0)
    arming.feed(b"y", 1.9)
    assert arming.take(3.0) is None
    arming.feed(b"y", 5.0)
    assert arming.take(5.1) is Key.YES
    arming.used_elsewhere(b"\x1b", 6.0)
    assert arming.take(7.0) is None


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGate]:
    with running_gate(tmp_path_factory.mktemp("g")) as running:
        yield running


def test_enter_lists_what_was_run_and_opens_its_whole_output(listed: RunningGate) -> None:
    terminal = listed.terminal
    with listed.ask(request(["seq", "1", "60"])) as connection:
        terminal.wait_for(QUESTION)
        terminal.type("y")
        assert base64.b64decode(answer(connection)["stdout"]).endswith(b"60\n")
    terminal.wait_for("(60 lines, truncated)")
    terminal.type("\n")
    terminal.wait_for("seq 1 60")
    terminal.wait_for("1-9 open one")
    terminal.type("1")
    # Thirty rows, so there are three pages.
    terminal.wait_for("Space reads on")
    terminal.type(" ")
    terminal.wait_for("│ 45")
    terminal.type(" ")
    terminal.wait_for("│ 60")
    terminal.wait_for("the end")
    terminal.type("b")
    terminal.wait_for("│ 45")
    terminal.type("q")
    terminal.wait_for("1-9 open one")
    terminal.type("q")
    # The question after it is asked as ever.
    with listed.ask(request(["true"])) as connection:
        terminal.wait_for(QUESTION)
        terminal.type("y")
        assert answer(connection)["status"] == "ok"


def test_a_command_is_ended_from_the_list(listed: RunningGate) -> None:
    terminal = listed.terminal
    with listed.ask(request(["sleep", "300"])) as connection:
        terminal.wait_for(QUESTION)
        terminal.type("y")
        terminal.wait_for("→ Approved")
        terminal.type("\n")
        terminal.wait_for("running")
        terminal.wait_for("1-9 open one")
        terminal.type("x")
        terminal.wait_for("Open one with its digit first; x ends it there.")
        terminal.type("1")
        terminal.wait_for("State:   running")
        terminal.wait_for("x ends it")
        terminal.type("x")
        reply = answer(connection)
    assert reply["message"] == "command ended by the person at the terminal"
    terminal.type("q")
    terminal.type("q")
    # Said once the list is closed; what is typed before that is not kept.
    terminal.wait_for("error: command ended by the person")


def test_a_question_takes_the_screen_from_the_list(listed: RunningGate) -> None:
    terminal = listed.terminal
    terminal.type("\n")
    terminal.wait_for("1-9 open one")
    with listed.ask(request(["echo", "new"])) as connection:
        terminal.wait_for("Command: echo new")
        terminal.wait_for(QUESTION)
        terminal.type("y")
        assert answer(connection)["status"] == "ok"


@proves("GATE-ASK-01")
def test_the_list_at_a_question_decides_nothing(listed: RunningGate, tmp_path: Path) -> None:
    terminal = listed.terminal
    with listed.ask(request(["touch", str(tmp_path / "ran")])) as connection:
        terminal.wait_for(QUESTION)
        terminal.type("l")
        terminal.wait_for("waiting")
        terminal.wait_for("1-9 open one")
        for key in ("y", "g", "d", "n", "9"):
            terminal.type(key)
        terminal.type("1")
        terminal.wait_for("State:   waiting")
        terminal.type("x")
        terminal.wait_for("It does not run.")
        terminal.type("q")
        terminal.wait_for("1-9 open one")
        terminal.type("\x1b")
        terminal.wait_for(QUESTION)
        assert not (tmp_path / "ran").exists()
        terminal.type("y")
        assert answer(connection)["status"] == "ok"
    assert (tmp_path / "ran").exists()
