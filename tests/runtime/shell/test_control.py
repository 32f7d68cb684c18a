"""The side channel's lines and reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runtime.shell.control import ReportReader, ShellReport, command_lines
from stringd.runtime.shell.errors import UnusableInputError


def test_reports_may_arrive_in_any_pieces() -> None:
    data = b"1\x000\x00/home/me\x002\x00130\x00/tmp/with\nline\x00"
    whole = [ShellReport(1, 0, "/home/me"), ShellReport(2, 130, "/tmp/with\nline")]
    assert ReportReader().feed(data) == whole
    reader = ReportReader()
    assert [report for byte in data for report in reader.feed(bytes([byte]))] == whole


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_any_text_stays_on_the_first_of_two_lines(text: str) -> None:
    lines = command_lines(7, text, "/dev/pts/0")
    assert lines.count(b"\n") == 2
    assert lines.endswith(b"\n")
    assert lines.startswith(b"! ")
    assert lines.count(b"!") == 1


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(UnusableInputError):
        command_lines(1, "echo \0", "/dev/pts/0")
