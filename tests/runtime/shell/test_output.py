"""Replies are bounded; the full text stays readable."""

import os
from collections.abc import Iterator

import pytest

from stringd.runtime.shell import output as module
from stringd.runtime.shell.output import MEMORY_BYTES, Background, Output, Transcript, Window


def test_a_short_text_is_shown_whole_without_its_trailing_blanks() -> None:
    window = Window(100)
    window.feed("one\n")
    window.feed("two\n\n  ")
    assert window.view() == ("one\ntwo", False)


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    window = Window(60)
    for number in range(1000):
        window.feed(f"line {number}\n")
    text, truncated = window.view()
    assert truncated
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("\nline 998\nline 999")
    assert "left out" in text


def test_the_count_of_lines_left_out_is_exact() -> None:
    window = Window(60)
    for number in range(1000):
        window.feed(f"line {number}\n")
    text, _ = window.view()
    shown = [line for line in text.splitlines() if line.startswith("line ")]
    assert f"[… {1000 - len(shown)} lines," in text


def test_a_single_line_longer_than_the_limit_is_cut_in_the_middle() -> None:
    window = Window(100)
    window.feed("a" * 500 + "b" * 500)
    text, truncated = window.view()
    assert truncated
    assert text.startswith("a" * 50 + "\n[")
    assert text.endswith("]\n" + "b" * 50)


def test_each_reply_gets_only_what_is_new() -> None:
    output = Output()
    output.feed(b"first\n")
    assert output.take().text == "first"
    output.feed(b"second\n")
    assert output.take().text == "second"
    assert output.transcript.read_lines(1, 9) == ["first", "second"]
    output.transcript.close()


@pytest.fixture
def transcript() -> Iterator[Transcript]:
    transcript = Transcript()
    yield transcript
    transcript.close()


@pytest.fixture
def numbered(transcript: Transcript) -> Transcript:
    for start in range(0, 100_000, 100):
        transcript.append("".join(f"line {n + 1}\n" for n in range(start, start + 100)))
    return transcript


def test_any_range_of_lines_can_be_read(numbered: Transcript) -> None:
    assert numbered.lines == 100_000
    assert numbered.read_lines(1, 2) == ["line 1", "line 2"]
    assert numbered.read_lines(54_321, 54_323) == ["line 54321", "line 54322", "line 54323"]
    assert numbered.read_lines(100_000, 100_001) == ["line 100000"]
    assert numbered.read_lines(100_001, 100_002) == []


def test_a_range_ends_where_the_reply_is_full(numbered: Transcript) -> None:
    assert numbered.read_lines(1, 100_000, limit=20) == ["line 1", "line 2"]


def test_bytes_inside_a_huge_line_can_be_read(transcript: Transcript) -> None:
    transcript.append("a" * 5000 + "b" * 5000)
    assert transcript.read_bytes(4998, 5002) == "aabb"


def test_a_large_text_lies_in_an_unnamed_file_of_its_owner(transcript: Transcript) -> None:
    transcript.append("x" * (MEMORY_BYTES + 1))
    state = os.fstat(transcript._file.fileno())
    assert state.st_nlink == 0
    assert state.st_mode & 0o777 == 0o600


def test_a_runaway_output_stops_filling_the_disk(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DISK_BYTES", 1000)
    for _ in range(100):
        transcript.append("x" * 100)
    assert transcript.size == 1000
    assert not transcript.complete


def test_background_output_is_bounded_and_readable() -> None:
    background = Background()
    for number in range(20_000):
        background.feed(b"job %d\n" % number)
    text = background.read().text
    assert background.seen
    assert text.endswith("job 19999")
    assert len(text) < 30_000
