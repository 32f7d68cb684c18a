import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.capture import Capture
from stringd.wire.gate import Blob
from tests.gate.streams import fill
from tests.requirements import proves


@given(st.lists(st.binary(max_size=12)), st.integers(1, 40))
@proves("GATE-EXE-03")
def test_what_is_kept_is_the_beginning_however_it_arrives(pieces: list[bytes], cap: int) -> None:
    capture = Capture(cap)
    for piece in pieces:
        fill(capture, piece)
    whole = b"".join(pieces)
    assert bytes(capture.blob()) == whole[:cap]
    assert b"".join(capture.blob().base64) == b"".join(Blob(whole[:cap]).base64)
    assert capture.total == len(whole)
    assert capture.truncated is (len(whole) > cap)
    assert capture.newlines == whole[:cap].count(b"\n")
    assert capture.head == whole[:cap]


def test_the_newlines_of_a_large_output_are_not_all_counted() -> None:
    capture = Capture()
    for _ in range(40):
        fill(capture, b"\n" * 65536)
    assert not capture.counted_all
    assert 0 < capture.newlines < capture.kept


@pytest.mark.parametrize("cap", [2_000_000, 4_000_000, 4_000_001, 4_000_002])
def test_a_large_output_comes_out_as_it_went_in(cap: int) -> None:
    capture = Capture(cap)
    whole = random.Random(cap).randbytes(4_500_000)
    for start in range(0, len(whole), 70_001):
        fill(capture, whole[start : start + 70_001])
    assert b"".join(capture.blob().base64) == base64.b64encode(whole[:cap])
    assert bytes(capture.blob()) == whole[:cap]
    assert capture.head == whole[:16_384]
    assert capture.ends_line is whole[:cap].endswith(b"\n")


def test_what_was_dropped_does_not_change_how_the_kept_text_ends() -> None:
    capture = Capture(12_288)
    fill(capture, b"x" * 12_287 + b"\n")
    fill(capture, b"dropped")
    assert capture.ends_line
    assert capture.truncated
