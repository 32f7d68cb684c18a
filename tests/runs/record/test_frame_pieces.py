"""Broadcasts in pieces: every frame, whole when joined, never much at a time."""

from pathlib import Path

import pytest

from stringd.runs.record.frame_pieces import PIECE_BYTES, held_pieces, kept_pieces
from stringd.runs.record.frames import unreadable_frames

LONG = b'{"seq":7,"text":"' + b"x" * (3 * PIECE_BYTES) + b'"}'


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b'{"seq":1}'],
        [b'{"seq":1}'] * 20_000,
        [LONG],
        [b'{"seq":1}', LONG, b'{"seq":2}', LONG, LONG],
        [b'{"seq":1,"t":"%b"}' % (b"y" * (PIECE_BYTES - 20 + more)) for more in range(6)],
    ],
)
def test_the_pieces_are_the_frames(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    pieces = list(kept_pieces(str(path)))
    assert b"".join(pieces).split(b"\n")[:-1] == lines
    assert max(map(len, pieces), default=0) <= 2 * PIECE_BYTES
    assert b"".join(held_pieces(lines)) == b"".join(pieces)


def test_what_is_not_a_frame_is_left_out_and_a_last_line_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for last in (b'{"seq":2}', LONG):
        path.write_bytes(b'{"seq":1}\ntorn{\n' + b"t" * (2 * PIECE_BYTES) + b"\n" + last)
        assert b"".join(kept_pieces(str(path))) == b'{"seq":1}\n' + last + b"\n"


def test_lines_that_are_not_frames_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"seq":1}\n\n{"seq":0}\n' + b"[{" * 5000 + b"\n" + bytes(9) + b"\n{")
    assert unreadable_frames(path) == 4
    assert list(kept_pieces(str(path))) == [b'{"seq":1}\n']


def test_a_file_that_is_gone_has_no_frames(tmp_path: Path) -> None:
    assert list(kept_pieces(str(tmp_path / "nobody"))) == []
