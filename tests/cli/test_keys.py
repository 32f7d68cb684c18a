"""The line typed under a live view."""

import pytest

from stringd.cli.keys import LineEditor


@pytest.mark.parametrize(
    ("typed", "lines", "left"),
    [
        ("ab\r", ["ab"], ""),
        ("a\nb", ["a"], "b"),
        ("abc\x7f\x7fd", [], "ad"),
        ("one two\x17", [], "one"),
        ("gone\x15new", [], "new"),
        ("\x1b[Aup\x1b[3~x\x1bOP", [], "upx"),
        ("\x07\x00ö", [], "ö"),
    ],
)
def test_keys_edit_the_line(typed: str, lines: list[str], left: str) -> None:
    editor = LineEditor()
    assert ([line.text for line in editor.feed(typed)], editor.text) == (lines, left)


def test_a_line_knows_when_it_was_begun() -> None:
    editor = LineEditor()
    assert editor.feed("ye", 1.0) == []
    assert editor.feed("s\rno\r", 5.0) == [("yes", 1.0), ("no", 5.0)]
