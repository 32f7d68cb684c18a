from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.capture import Capture
from stringd.wire.gate import Blob
from tests.requirements import proves


@given(st.lists(st.binary(max_size=12)), st.integers(1, 40))
@proves("GATE-EXE-03")
def test_what_is_kept_is_the_beginning_however_it_arrives(pieces: list[bytes], cap: int) -> None:
    capture = Capture(cap)
    for piece in pieces:
        capture.add(piece)
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
        capture.add(b"\n" * 65536)
    assert not capture.counted_all
    assert 0 < capture.newlines < capture.kept
