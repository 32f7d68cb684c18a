"""Ranges of an output, as a caller writes them."""

from collections.abc import Iterator

import pytest

from stringd.runtime.shell.errors import BadRangeError
from stringd.runtime.shell.output import Transcript, excerpt


@pytest.fixture
def five_lines() -> Iterator[Transcript]:
    transcript = Transcript()
    transcript.append("one\ntwo\nthree\nfour\nfive\n")
    yield transcript
    transcript.close()


@pytest.mark.parametrize(
    ("wanted", "title", "text"),
    [
        ("", "output: lines 1-5 of 5", "one\ntwo\nthree\nfour\nfive"),
        ("2-3", "output: lines 2-3 of 5", "two\nthree"),
        ("4-", "output: lines 4-5 of 5", "four\nfive"),
        ("2", "output: lines 2-2 of 5", "two"),
        ("-2", "output: lines 4-5 of 5", "four\nfive"),
        ("4-99", "output: lines 4-5 of 5", "four\nfive"),
        ("99-", "output: no such lines, there are 5", ""),
        ("bytes 4-7", "output: bytes 4-7 of 24", "two"),
        ("bytes -5", "output: bytes 19-24 of 24", "five\n"),
    ],
)
def test_a_range_gives_its_lines_and_says_which(
    five_lines: Transcript, wanted: str, title: str, text: str
) -> None:
    assert excerpt(five_lines, wanted) == (title, text)


@pytest.mark.parametrize("wanted", ["x", "1-2-3", "-", "bytes", "1,2", "--5"])
def test_what_is_no_range_is_refused(five_lines: Transcript, wanted: str) -> None:
    with pytest.raises(BadRangeError):
        excerpt(five_lines, wanted)
