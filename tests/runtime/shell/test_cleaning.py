"""Terminal bytes become plain text, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.runtime.shell.cleaning import LONGEST_HELD_LINE, Cleaner, clean


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\ntext", "plain\ntext"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b[2J\x1b[Hcleared", "cleared"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bP1$r0m\x1b\\dcs", "dcs"),
        (b"\x1b(Bcharset\x1b=\x1b>", "charset"),
        (b"first\x1b[5;1Hplaced", "first\nplaced"),
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"10%\r100%\r", "100%"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b"abc\b\bX", "aX"),
        (b"_\bB_\bo_\bl_\bd", "Bold"),
        (b"nul\0bell\x07del\x7f", "nulbelldel"),
        (b"tab\tstays", "tab\tstays"),
        ("héllo 🌍".encode(), "héllo 🌍"),
        (b"bad \xff\xfe bytes", "bad \ufffd\ufffd bytes"),
        (b"cut \xc3", "cut \ufffd"),
        (b"c1 \xc2\x9b31m", "c1 31m"),
        (b"open \x1b]never closed", "open never closed"),
        (b"ends in escape\x1b", "ends in escape"),
    ],
)
def test_what_a_terminal_received_becomes_text(raw: bytes, text: str) -> None:
    assert clean(raw) == text


@given(
    st.lists(
        st.sampled_from(
            [b"text", b"\n", b"\r", b"\x1b[31m", b"\x1b]0;t\x07", b"\x1b[4;2H", "é".encode()]
        )
    ),
    st.integers(min_value=1, max_value=7),
)
def test_the_text_does_not_depend_on_where_the_bytes_are_cut(
    pieces: list[bytes], size: int
) -> None:
    raw = b"".join(pieces)
    cleaner = Cleaner()
    cut = "".join(cleaner.feed(raw[at : at + size]) for at in range(0, len(raw), size))
    assert cut + cleaner.flush() == clean(raw)


@given(st.binary())
def test_no_control_character_survives(raw: bytes) -> None:
    text = clean(raw)
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
    assert not any(0x7F <= ord(char) <= 0x9F for char in text)


def test_an_endless_progress_bar_is_not_kept() -> None:
    cleaner = Cleaner()
    for step in range(10_000):
        assert cleaner.feed(b"\r%d%%" % step) == ""
    assert cleaner.flush() == "9999%"


def test_a_very_long_line_passes_through_before_it_ends() -> None:
    cleaner = Cleaner()
    assert cleaner.feed(b"x" * (LONGEST_HELD_LINE + 1)) == "x" * (LONGEST_HELD_LINE + 1)
    assert cleaner.feed(b"y") == "y"


def test_a_prompt_without_newline_shows_when_asked_for() -> None:
    cleaner = Cleaner()
    assert cleaner.feed(b"Continue? [y/N] ") == ""
    assert cleaner.flush() == "Continue? [y/N] "
