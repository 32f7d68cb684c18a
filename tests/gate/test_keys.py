import pytest

from stringd.gate.keys import ESCAPE_SECONDS, MOVING, PASTE_SECONDS, Key, KeyReader, classify
from tests.requirements import proves

PASTE = b"\x1b[200~"
END = b"\x1b[201~"


def keys(data: bytes) -> list[Key]:
    return [classify(press) for press in KeyReader().feed(data, 0.0)]


@proves("GATE-ASK-01")
def test_of_all_256_bytes_only_y_is_a_yes() -> None:
    meanings = {byte: classify(bytes([byte])) for byte in range(256)}
    assert {chr(byte) for byte, key in meanings.items() if key is Key.YES} == {"y", "Y"}
    others = {chr(byte) for byte, key in meanings.items() if key not in (Key.YES, Key.NO)}
    assert others == {"n", "d", "g", "l", "v", " ", "b", "?"}
    assert all(meanings[ord(key)] is Key.NO for key in "aA\r\n\x1b\x00qV1N")
    assert classify(None) is Key.SILENCE


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b" ", Key.NEXT),
        (b"\x1b[B", Key.NEXT),
        (b"\x1b[6~", Key.NEXT),
        (b"\x1bOB", Key.NEXT),
        (b"\x1b[A", Key.BACK),
        (b"\x1b[5~", Key.BACK),
        (b"\x1b[C", Key.NOTHING),
        (b"\x1b[D", Key.NOTHING),
        (b"\x1b[H", Key.NOTHING),
        (b"\x1b[1;5A", Key.NOTHING),
        (b"\x1bOP", Key.NOTHING),
        (b"\x1by", Key.NOTHING),
    ],
)
def test_keys_that_move_never_deny(data: bytes, key: Key) -> None:
    assert keys(data) == [key]
    assert key in MOVING


@pytest.mark.parametrize("key", ["é", "語"])
def test_a_character_of_several_bytes_is_one_key(key: str) -> None:
    assert keys(key.encode()) == [Key.NO]


@proves("GATE-ASK-04")
@pytest.mark.parametrize("pasted", [b"y", b"yyyy\n", b"ls\x1b[31m\ny", b""])
def test_a_paste_is_one_key_that_means_nothing(pasted: bytes) -> None:
    assert keys(PASTE + pasted + END) == [Key.NOTHING]


@proves("GATE-ASK-04")
def test_a_paste_that_arrives_in_pieces_is_still_one() -> None:
    reader = KeyReader()
    assert reader.feed(PASTE + b"some", 0.0) == [PASTE]
    assert reader.feed(b"y", 0.1) == []
    assert reader.feed(b"y" + END + b"n", 0.2) == [b"n"]


def test_a_paste_without_an_end_is_over_after_a_while() -> None:
    reader = KeyReader()
    reader.feed(PASTE + b"some", 0.0)
    assert reader.feed(b"n", PASTE_SECONDS + 0.1) == [b"n"]


def test_an_arrow_in_pieces_is_an_arrow_and_a_lone_escape_is_one_after_a_moment() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b", 0.0) == []
    assert reader.flush(ESCAPE_SECONDS / 2) == []
    assert reader.feed(b"[B", ESCAPE_SECONDS / 2) == [b"\x1b[B"]
    assert reader.feed(b"\x1b", 1.0) == []
    assert reader.due() == 1.0 + ESCAPE_SECONDS
    assert reader.flush(1.0 + ESCAPE_SECONDS) == [b"\x1b"]
    assert reader.due() is None
